/* GPUs on paper: chips that are not here, whose kernels the vendor's real compiler builds, and which compute nothing.
 *
 *   memory     addresses that nothing lies behind; copies and launches do nothing
 *   kernels    those of src/device/gpu, built by NVRTC (nvrtc.h), each with what the compiler says of it
 *   captures   check each launch: there is such a kernel, it takes those arguments and groups of that size
 *
 * "paper:0" is the chip number 0 of paper_chips, and so on. The last one has no compiler: what is built for it is
 * written to a folder, for other compilers.
 * It is found by name after paper_add(), in tests only: no list names it, and no library holds it. Threads: one at a
 * time for each device.
 */
#ifndef STK_TESTS_PAPER_H
#define STK_TESTS_PAPER_H

#include "device/gpu/gpu.h"

typedef struct paper_chip {
    const char *name;
    int arch; /* 90: sm_90; 0: the text in OpenCL's dialect */
    int n_units;
} paper_chip;

extern const paper_chip paper_chips[];
enum { PAPER_A100, PAPER_H100, PAPER_B200, PAPER_TEXT, PAPER_N_CHIPS };

/* What the compiler made of a kernel. */
typedef struct paper_kernel {
    char name[GPU_NAME_BYTES]; /* with the unit's key: "softmax_rows_0123456789abcdef" */
    char file[48];             /* in kernels/, or what a printed text is called */
    char settings[384];        /* "T bf16, REDUCE_FIRST 0.0f", cut off */
    int group;                 /* work-items in one; 0: the kernel does not say */
    int registers, stack_bytes, shared_bytes;
    int spill_store_bytes, spill_load_bytes;
    int n_mma, n_wgmma, n_fma; /* instructions in its PTX: multiplications of tiles; fma of one f32 */
    int n_arguments;
    uint16_t argument_bytes[GPU_MOST_ARGUMENTS];
} paper_kernel;

struct gpu_module {
    paper_kernel *kernel; /* owned */
    int n_kernels;
};

extern const stk_device_class paper_class;
/* Kernels that must not spill, and those whose products must be mma.sync or wgmma (rules.c). */
bool paper_is_hot(const paper_kernel *kernel);
bool paper_wants_tiles(const paper_kernel *kernel);

/* Lets stk_device_open find the device. */
void paper_add(void);
/* An existing folder for the text of PAPER_TEXT, borrowed: one file for each program, named by its content. */
void paper_set_folder(const char *folder);
/* From now on an op without a kernel is noted instead of refused, so that the rest of a program is built all the same:
 * a kernel that launches nothing stands in its place. */
void paper_set_lenient(bool lenient);
/* What devices that are opened from now on can do, borrowed; NULL: what there are kernels of. */
void paper_set_caps(const stk_device_caps *caps);
/* What was noted, "matmul of bf16, bf16": NULL behind the last. Borrowed until paper_forget_missing. */
const char *paper_get_missing(int i);
void paper_forget_missing(void);
/* Builds what was asked for. The kernels of all programs are then in device->module. */
stk_status paper_build(stk_device *device);

#endif
