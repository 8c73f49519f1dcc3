/* The module: stoker._core. See core.h. */
#include "core.h"

static PyObject *core_version(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyUnicode_FromString(stk_version());
}

static PyMethodDef functions[] = {{"version", core_version, METH_NOARGS, "version()\n--\n\nOf the library: '0.1.0'."},
                                  {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "stoker._core",
                                        "Stoker's C interface; what is convenient is in the package stoker.",
                                        -1,
                                        functions,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__core(void); /* found by its name */

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (core_add_errors(module) == 0 && core_add_arrays(module) == 0 && core_add_datasets(module) == 0 &&
        core_add_loaders(module) == 0 && core_add_runs(module) == 0 && core_add_graphs(module) == 0)
        return module;
    Py_DECREF(module);
    return NULL;
}
