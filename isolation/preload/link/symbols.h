/* Stands in for a library of glibc when ours are linked: it has what may be imported, each by the version that the
 * first glibc on that architecture gave it. Something else, or something newer, fails to link; and what is linked says
 * that it needs this library under the name it has in all glibc, whatever the machine that builds has. */
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
