/* Stands in for a library of glibc when ours are linked: it has the symbols that may be imported, each in the version
 * of the first glibc for that architecture. Other or newer symbols fail to link, and the linked object depends on this
 * library under the name that it has in every glibc, regardless of the build machine. */
#pragma once

#ifdef __x86_64__
#define SINCE(node) #node
#else
#define SINCE(node) "GLIBC_2.17"
#endif

#define SYMBOL(name, node)                                                                                             \
    void stands_for_##name(void);                                                                                      \
    void stands_for_##name(void) {}                                                                                    \
    __asm__(".symver stands_for_" #name ", " #name "@@" SINCE(node));
