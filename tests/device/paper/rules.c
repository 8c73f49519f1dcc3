/* What is wanted of kernels that matter: paper.h. */
#include <string.h>

#include "device/paper/paper.h"

/* In the name of a file, or of a kernel. */
static const char *const hot[] = {"matmul",  "product", "conv",     "attention", "norm",
                                  "softmax", "entropy", "multiply", NULL};

/* Kernels whose 16-bit forms multiply tiles: the file, and how the kernel's name begins. */
static const struct {
    const char *file, *kernel;
} tiles[] = {
    {"matmul.dev", "multiply_tiles"},
    {"conv.dev", "multiply_tiles"},
    {"attention.dev", "attention"},
    {"attention_grad.dev", "attention_grad"},
    {"attention_fragments.dev", "attention_fragments"},
    {"attention_grad_fragments.dev", "attention_grad_fragments"},
};

bool paper_is_hot(const paper_kernel *kernel)
{
    for (int i = 0; hot[i]; i++)
        if (strstr(kernel->file, hot[i]) || strstr(kernel->name, hot[i])) return true;
    return false;
}

bool paper_wants_tiles(const paper_kernel *kernel)
{
    if (!strstr(kernel->settings, "T bf16") && !strstr(kernel->settings, "T f16")) return false;
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++)
        if (!strcmp(kernel->file, tiles[i].file) && !strncmp(kernel->name, tiles[i].kernel, strlen(tiles[i].kernel)))
            return true;
    return false;
}
