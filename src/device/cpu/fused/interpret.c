/* Running an element-wise program, block after block. See program.h. */
#include <string.h>

#include "device/cpu/fused/program.h"
#include "graph/dropout.h"

typedef stk_fused_program_walk walk;

static void load_run(const stk_element_program *p, const stk_fused_program_input *input, const char *src, int64_t n,
                     int64_t stride, char *dst)
{
    if (stride == 1)
        memcpy(dst, src, (size_t)n << input->log2_bytes);
    else
        p->table->gather[input->log2_bytes](n, dst, src, stride);
}

/* Elements first .. first+n-1 of a broadcast input: in its buffer, or where they are when they lie side by side. */
static void *load(const stk_element_program *p, const stk_fused_program_input *input, const char *src, int64_t first,
                  int64_t n, char *buffer)
{
    int64_t digit[STK_MAX_RANK], rest = first, offset = 0;
    int last = p->rank - 1;
    for (int axis = last; axis >= 0; axis--) {
        digit[axis] = rest % p->dim[axis];
        rest /= p->dim[axis];
        offset += digit[axis] * input->stride[axis];
    }
    int64_t stride = input->stride[last];
    if (stride == 1 && n <= p->dim[last] - digit[last]) return (char *)src + ((size_t)offset << input->log2_bytes);
    for (int64_t done = 0, run; done < n; done += run) {
        run = p->dim[last] - digit[last] < n - done ? p->dim[last] - digit[last] : n - done;
        load_run(p, input, src + ((size_t)offset << input->log2_bytes), run, stride,
                 buffer + ((size_t)done << input->log2_bytes));
        digit[last] += run;
        offset += run * stride;
        for (int axis = last; axis > 0 && digit[axis] == p->dim[axis]; axis--) {
            offset += input->stride[axis - 1] - digit[axis] * input->stride[axis];
            digit[axis] = 0;
            digit[axis - 1]++;
        }
    }
    return buffer;
}

static stk_dropout_args dropout_args(const walk *w, const stk_fused_program_instr *instr)
{
    int64_t seed = *(const int64_t *)w->in[instr->seed], sample = *(const int64_t *)w->in[instr->sample];
    return (stk_dropout_args){stk_dropout_key(seed, instr->stream), sample, w->program->n_columns, instr->rate};
}

static void drop(const walk *w, const stk_fused_program_instr *instr, int64_t first, int64_t n)
{
    stk_dropout_args args = dropout_args(w, instr);
    instr->dropout(&args, first, n, w->at[instr->dst], w->at[instr->src[0]]);
}

/* Buffers, constants, and inputs that are the same for every block. */
void stk_fused_program_begin(const walk *w)
{
    const stk_element_program *p = w->program;
    char *buffer = (char *)w->at + ((size_t)p->n_slots * sizeof(void *) + 63) / 64 * 64;
    for (int32_t s = p->n_in + p->n_out; s < p->n_slots; s++, buffer += p->slot_bytes)
        w->at[s] = buffer;
    for (int32_t i = 0; i < p->n_fills; i++) {
        const stk_fused_program_fill *fill = &p->fill[i];
        p->table->gather[fill->log2_bytes](p->block, w->at[fill->slot], &fill->bits, 0);
    }
    int64_t n = p->block < p->count ? p->block : p->count;
    for (int32_t i = 0; i < p->n_in; i++)
        if (p->input[i].load == STK_LOAD_ONCE)
            w->at[i] = load(p, &p->input[i], w->in[i], 0, n, w->at[p->input[i].buffer]);
}

void stk_fused_program_run_block(const walk *w, int64_t first, int64_t n)
{
    const stk_element_program *p = w->program;
    for (int32_t i = 0; i < p->n_in; i++) {
        const stk_fused_program_input *input = &p->input[i];
        if (input->load == STK_LOAD_DENSE)
            w->at[i] = (char *)w->in[i] + ((size_t)first << input->log2_bytes);
        else if (input->load == STK_LOAD_WALK)
            w->at[i] = load(p, input, w->in[i], first, n, w->at[input->buffer]);
    }
    for (int32_t o = 0; o < p->n_out; o++)
        w->at[p->n_in + o] =
            o == p->band_output ? w->out[o] : (char *)w->out[o] + ((size_t)first << p->out_log2_bytes[o]);
    for (int32_t j = 0; j < p->n_instr; j++) {
        const stk_fused_program_instr *instr = &p->instr[j];
        if (!instr->run) {
            drop(w, instr, first, n);
            continue;
        }
        const void *src[3] = {w->at[instr->src[0]], w->at[instr->src[1]], w->at[instr->src[2]]};
        instr->run(n, w->at[instr->dst], src);
    }
    for (int32_t i = 0; i < p->n_copies; i++) {
        int32_t o = p->copy[i].out;
        memcpy(w->at[p->n_in + o], w->at[p->copy[i].slot], (size_t)n << p->out_log2_bytes[o]);
    }
}

static void run_share(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const stk_element_program *program = task->state;
    walk w = {program, task->args->in, task->args->out, NULL};
    int64_t begin_at, end_at;
    stk_cpu_share(program->count, program->block, i_thread, n_threads, &begin_at, &end_at);
    if (begin_at >= end_at) return;
    w.at = (void **)(void *)((char *)task->args->scratch + program->thread_bytes * (size_t)i_thread);
    stk_fused_program_begin(&w);
    for (int64_t i = begin_at; i < end_at; i += program->block)
        stk_fused_program_run_block(&w, i, end_at - i < program->block ? end_at - i : program->block);
}

stk_status stk_fused_program_interpret(const void *state, const stk_kernel_args *args)
{
    const stk_element_program *program = state;
    stk_cpu_parallel(program->n_threads, run_share, &(stk_cpu_task){state, args});
    return STK_OK;
}
