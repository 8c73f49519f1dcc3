/* What a data set is, as a dict, and a sheet of its samples as a picture: stoker.Dataset.explain and sheet. */
#include <stdlib.h>

#include "core.h"
#include "stoker/data/explain.h"
#include "stoker/data/sheet.h"

/* A list of n texts of `step` bytes each. */
static PyObject *texts(const char *text, size_t step, int n)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        PyObject *one = PyUnicode_DecodeFSDefault(text + (size_t)i * step);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

/* Steals the reference. */
static bool append(PyObject *list, PyObject *one)
{
    bool is_added = one && PyList_Append(list, one) == 0;
    Py_XDECREF(one);
    return is_added;
}

static PyObject *stages_of(const stk_explanation *e)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < e->n_stages; i++) {
        const stk_explained_stage *s = &e->stage[i];
        PyObject *one = Py_BuildValue("{s:s,s:s,s:s,s:O,s:i}", "field", s->field, "name", s->name, "output", s->output,
                                      "random", s->random ? Py_True : Py_False, "pass", s->i_pass);
        if (!append(list, one)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *fields_of(const stk_explanation *e)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < e->n_fields; i++) {
        const stk_explained_field *f = &e->field[i];
        PyObject *one = Py_BuildValue("{s:s,s:s,s:s,s:n}", "name", f->name, "input", f->input, "output", f->output,
                                      "row_bytes", (Py_ssize_t)f->row_bytes);
        if (!append(list, one)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *explanation_dict(const stk_explanation *e)
{
    static const char *const policy[] = {"stop", "skip", "replace"}, *const kinds[] = {"none", "memory", "disk",
                                                                                       "auto"};
    PyObject *order = texts(e->order[0], sizeof(e->order[0]), e->n_orders);
    PyObject *scans = texts(e->scan[0], sizeof(e->scan[0]), e->n_scans), *stages = stages_of(e), *fields = fields_of(e);
    PyObject *note = PyUnicode_DecodeFSDefault(e->note), *corrupt = PyUnicode_DecodeFSDefault(e->corrupt);
    if (order && scans && stages && fields && note && corrupt)
        return Py_BuildValue(
            "{s:s,s:L,s:L,s:L,s:d,s:L,s:N,s:O,s:N,s:N,s:O,s:O,s:O,s:s,s:L,s:L,s:L,s:L,s:L,s:d,s:N,s:N,s:i,s:i,s:n,s:n,"
            "s:s,s:N}",
            "source", e->source, "records", (long long)e->n_records, "files", (long long)e->n_files, "classes",
            (long long)e->n_classes, "record_bytes", e->record_bytes, "n_corrupt", (long long)e->n_corrupt, "corrupt",
            corrupt, "in_memory", e->in_memory ? Py_True : Py_False, "order", order, "surveys", scans, "indexable",
            e->indexable ? Py_True : Py_False, "same_batches", e->same_batches ? Py_True : Py_False, "exact_resume",
            e->exact_resume ? Py_True : Py_False, "on_error", policy[e->on_error], "samples", (long long)e->n_samples,
            "batches", (long long)e->n_batches, "batch", (long long)e->batch, "last", (long long)e->n_last, "dropped",
            (long long)e->n_dropped, "padding", e->padding, "stages", stages, "fields", fields, "threads", e->n_threads,
            "slots", e->n_slots, "slot_bytes", (Py_ssize_t)e->slot_bytes, "memory_limit_bytes",
            (Py_ssize_t)e->memory_limit_bytes, "cache", kinds[e->cache.kind], "note", note);
    Py_XDECREF(order);
    Py_XDECREF(scans);
    Py_XDECREF(stages);
    Py_XDECREF(fields);
    Py_XDECREF(note);
    Py_XDECREF(corrupt);
    return NULL;
}

static bool is_part(const core_dataset *self)
{
    if (!self->handle) PyErr_SetString(PyExc_ValueError, "this data set is a part of another one");
    return !self->handle;
}

PyObject *core_dataset_explain(PyObject *object, PyObject *none)
{
    core_dataset *self = (core_dataset *)object;
    (void)none;
    if (is_part(self)) return NULL;
    stk_explanation *e = malloc(sizeof(*e)); /* large */
    if (!e) return PyErr_NoMemory();
    stk_status status;
    Py_BEGIN_ALLOW_THREADS status = stk_dataset_explain(self->handle, NULL, e);
    Py_END_ALLOW_THREADS PyObject *dict = status == STK_OK ? explanation_dict(e) : NULL;
    if (status != STK_OK) core_raise(status, core_cause(self, status));
    free(e);
    return dict;
}

PyObject *core_dataset_sheet(PyObject *object, PyObject *args)
{
    core_dataset *self = (core_dataset *)object;
    const char *path, *field;
    stk_sheet_config config = {0};
    stk_sheet_info info;
    stk_status status;
    if (!PyArg_ParseTuple(args, "siiz:sheet", &path, &config.n_rows, &config.n_columns, &field) || is_part(self))
        return NULL;
    config.field = field;
    Py_BEGIN_ALLOW_THREADS status = stk_dataset_sheet(self->handle, NULL, &config, path, &info);
    Py_END_ALLOW_THREADS if (status != STK_OK)
    {
        core_raise(status, core_cause(self, status));
        return NULL;
    }
    return Py_BuildValue("(LLL)", (long long)info.n_samples, (long long)info.height, (long long)info.width);
}
