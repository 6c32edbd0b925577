/* A kernel that spins for the number of nanoseconds given by its parameter. A real card compiles it and measures with
 * its own clock; the simulation takes the time from the parameter of a kernel of this name and reads no image. Compute
 * capability 7.5 is the lowest supported by CUDA 13 drivers. */
#pragma once

static const char spinning_ptx[] = ".version 6.3\n"
                                   ".target sm_75\n"
                                   ".address_size 64\n"
                                   ".visible .entry sim_arg(.param .u64 nanoseconds)\n"
                                   "{\n"
                                   "    .reg .pred %more;\n"
                                   "    .reg .u64 %span, %begin, %now;\n"
                                   "    ld.param.u64 %span, [nanoseconds];\n"
                                   "    mov.u64 %begin, %globaltimer;\n"
                                   "again:\n"
                                   "    mov.u64 %now, %globaltimer;\n"
                                   "    sub.u64 %now, %now, %begin;\n"
                                   "    setp.lt.u64 %more, %now, %span;\n"
                                   "    @%more bra again;\n"
                                   "    ret;\n"
                                   "}\n";
