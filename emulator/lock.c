/* lock.c - dmlemu_hw.lock.Lock: the lock of one GPU; see lock.pyi.
 *
 * Entering and leaving are C code: a signal handler may raise at any moment in Python code, and the lock must then be
 * either free or held by a `with` that releases it.  The fields are protected by the GIL; the two gates are Python's
 * own locks, which release the GIL while they sleep and run signal handlers meanwhile. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#define MAX_PATIENCE 0.01 /* seconds that give_way waits for other threads */

typedef struct {
    PyObject_HEAD
    PyThreadState *owner; /* NULL: free */
    Py_ssize_t depth;
    Py_ssize_t waiting; /* threads that wait to enter */
    Py_ssize_t served;  /* how many threads have stopped waiting so far */
    Py_ssize_t awaited; /* the value of `served` that a thread in give_way waits for; 0: no thread waits there */
    PyObject *free;     /* released when the lock is free and a thread waits */
    PyObject *passed;   /* released when `served` reaches `awaited` */
} Lock;

/* Releases a gate, which may be open already.  An error could only be a failure of the host, and is not reported. */
static void open_gate(PyObject *gate) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(PyObject_CallMethod(gate, "acquire", "O", Py_False)); /* now it is closed in any case */
    Py_XDECREF(PyObject_CallMethod(gate, "release", NULL));
    PyErr_Restore(type, value, traceback);
}

/* Records that the calling thread no longer waits. */
static void stop_waiting(Lock *lock) {
    lock->waiting--;
    lock->served++;
    if (lock->served == lock->awaited) {
        open_gate(lock->passed);
    }
}

/* Waits until the lock is free and takes it; -1: a signal handler raised, and the lock was not taken.
 *
 * Any call of Python may collect garbage and run finalizers: the lock is taken before the next one. */
static int enter(Lock *lock) {
    const bool has_to_wait = lock->owner != NULL;
    lock->waiting += has_to_wait;
    while (lock->owner != NULL) {
        PyObject *result = PyObject_CallMethod(lock->free, "acquire", NULL);
        if (result == NULL) {
            stop_waiting(lock);
            if (lock->owner == NULL && lock->waiting > 0) {
                open_gate(lock->free); /* it may have been opened for this thread */
            }
            return -1;
        }
        Py_DECREF(result); /* True */
    }
    lock->owner = PyThreadState_Get();
    lock->depth = 1;
    if (has_to_wait) {
        stop_waiting(lock);
    }
    return 0;
}

static void leave(Lock *lock) {
    lock->owner = NULL;
    lock->depth = 0;
    if (lock->waiting > 0) {
        open_gate(lock->free);
    }
}

static PyObject *lock_enter(PyObject *self, PyObject *unused) {
    Lock *lock = (Lock *)self;
    (void)unused;
    if (lock->owner == PyThreadState_Get()) {
        lock->depth++;
    } else if (enter(lock) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *lock_exit(PyObject *self, PyObject *unused) {
    Lock *lock = (Lock *)self;
    (void)unused;
    if (lock->owner != PyThreadState_Get()) {
        PyErr_SetString(PyExc_RuntimeError, "This thread does not hold the lock.");
        return NULL;
    }
    if (--lock->depth == 0) {
        leave(lock);
    }
    Py_RETURN_NONE;
}

/* Takes the lock again, even if signal handlers raise; the first exception stays set. */
static void enter_again(Lock *lock) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    while (enter(lock) < 0) {
        if (type == NULL) {
            PyErr_Fetch(&type, &value, &traceback);
        } else {
            PyErr_Clear();
        }
    }
    PyErr_Restore(type, value, traceback);
}

static PyObject *lock_give_way(PyObject *self, PyObject *unused) {
    Lock *lock = (Lock *)self;
    (void)unused;
    if (lock->owner != PyThreadState_Get() || lock->depth != 1 || lock->waiting == 0) {
        Py_RETURN_FALSE;
    }
    lock->awaited = lock->served + lock->waiting;
    leave(lock);
    PyObject *result = PyObject_CallMethod(lock->passed, "acquire", "Od", Py_True, MAX_PATIENCE);
    lock->awaited = 0;
    enter_again(lock);
    if (result == NULL) {
        return NULL;
    }
    Py_DECREF(result);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *lock_call_if_free(PyObject *self, PyObject *function) {
    Lock *lock = (Lock *)self;
    if (lock->owner != NULL || enter(lock) < 0) {
        Py_RETURN_NONE;
    }
    PyObject *result = PyObject_CallObject(function, NULL);
    leave(lock);
    return result;
}

static PyObject *lock_is_mine(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(((Lock *)self)->owner == PyThreadState_Get());
}

static PyObject *lock_waiting(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSsize_t(((Lock *)self)->waiting);
}

/* A closed gate, or NULL. */
static PyObject *new_gate(void) {
    PyObject *module = PyImport_ImportModule("_thread");
    PyObject *gate = module == NULL ? NULL : PyObject_CallMethod(module, "allocate_lock", NULL);
    PyObject *result = gate == NULL ? NULL : PyObject_CallMethod(gate, "acquire", NULL);
    Py_XDECREF(module);
    if (result == NULL) {
        Py_CLEAR(gate);
    }
    Py_XDECREF(result);
    return gate;
}

static void lock_end(PyObject *self) {
    Lock *lock = (Lock *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(lock->free);
    Py_XDECREF(lock->passed);
    free_object(self);
    Py_DECREF(type);
}

static PyObject *lock_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    if (!PyArg_ParseTuple(arguments, ":Lock") || (named != NULL && PyDict_Size(named) != 0)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "Lock() takes no arguments.");
        }
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Lock *lock = (Lock *)allocate(type, 0); /* all zeros */
    if (lock != NULL && ((lock->free = new_gate()) == NULL || (lock->passed = new_gate()) == NULL)) {
        Py_CLEAR(lock);
    }
    return (PyObject *)lock;
}

static PyMethodDef methods[] = {{"__enter__", lock_enter, METH_NOARGS, NULL},
                                {"__exit__", lock_exit, METH_VARARGS, NULL},
                                {"call_if_free", lock_call_if_free, METH_O, NULL},
                                {"give_way", lock_give_way, METH_NOARGS, NULL},
                                {"is_mine", lock_is_mine, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static PyGetSetDef properties[] = {{"waiting", lock_waiting, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {{Py_tp_new, lock_new},
                              {Py_tp_dealloc, lock_end},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, properties},
                              {0, NULL}};

static PyType_Spec lock_type = {"dmlemu_hw.lock.Lock", sizeof(Lock), 0, Py_TPFLAGS_DEFAULT, slots};

static int fill_module(PyObject *module) {
    PyObject *type = PyType_FromSpec(&lock_type);
    const int status = type == NULL ? -1 : PyModule_AddObjectRef(module, "Lock", type);
    Py_XDECREF(type);
    return status;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)fill_module}, {0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "lock", NULL, 0, NULL, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_lock(void) { return PyModuleDef_Init(&module); }
