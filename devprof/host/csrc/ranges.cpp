// The short way through devprof.host.ranges.record_function, compiled: construct, enter, exit.
//
// It reads and writes the same objects as the Python code that it stands in for: the slots of the range and of its block, the
// lists of the block, the context variable. Whatever is not the usual case goes to the Python methods. So the two can be
// exchanged at any time, also while ranges are open.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <time.h>

#ifdef Py_GIL_DISABLED
#error "a block is filled without locks, under the interpreter's own; build without it is not supported"
#endif

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

DEVPROF_EXPORT const char* devprof_build_info(void) { return DEVPROF_BUILD_INFO; }

namespace {

// Kept for the life of the process: installing again with the same classes changes nothing.
struct Names {
  PyTypeObject* range;
  PyObject *gate, *current, *clock, *leave;
  PyObject *s_block, *s_next_block, *s_enter_rarely, *s_leave_again, *s_number, *minus_one;
  Py_ssize_t block_size;
  // offsets of slots
  Py_ssize_t queues;                                                              // of the gate
  Py_ssize_t name, args, block, at, id, user_id, gone, outer, token;              // of a range
  Py_ssize_t next, first_id, starts, ends, parents, labels, names, read, queue;   // of a block
  Py_ssize_t queue_labels;                                                        // of a queue
} k;

PyObject*& slot(PyObject* object, Py_ssize_t offset) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
}

// Takes over the reference to `value`.
void put(PyObject* object, Py_ssize_t offset, PyObject* value) {
  PyObject* before = slot(object, offset);
  slot(object, offset) = value;
  Py_XDECREF(before);
}

bool offset_of(PyObject* type, const char* name, Py_ssize_t* offset) {
  PyObject* member = PyObject_GetAttrString(type, name);
  if (member == nullptr) return false;
  const bool is_slot = Py_IS_TYPE(member, &PyMemberDescr_Type);
  if (is_slot) *offset = reinterpret_cast<PyMemberDescrObject*>(member)->d_member->offset;
  Py_DECREF(member);
  if (!is_slot) PyErr_Format(PyExc_TypeError, "%s is no slot", name);
  return is_slot;
}

PyObject* read_clock(PyObject* block) {
  PyObject* clock = slot(block, k.read);
#ifdef __linux__
  if (clock == k.clock) {  // time.perf_counter_ns reads this clock on Linux
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return PyLong_FromLongLong(static_cast<long long>(now.tv_sec) * 1000000000LL + now.tv_nsec);
  }
#endif
  return PyObject_CallNoArgs(clock);
}

// Takes over the reference to `value`, also where it fails.
bool put_item(PyObject* column, Py_ssize_t at, PyObject* value) {
  if (value == nullptr) return false;
  if (PyList_CheckExact(column)) return PyList_SetItem(column, at, value) == 0;
  PyObject* index = PyLong_FromSsize_t(at);
  const int failed = index == nullptr ? -1 : PyObject_SetItem(column, index, value);
  Py_XDECREF(index);
  Py_DECREF(value);
  return failed == 0;
}

// Returns a new reference to the number of the label, nullptr with an exception where there is none to be had.
PyObject* label_of(PyObject* block, PyObject* name) {
  PyObject* number = PyDict_GetItemWithError(slot(block, k.names), name);
  if (number != nullptr) return Py_NewRef(number);
  if (PyErr_Occurred()) return nullptr;
  return PyObject_CallMethodOneArg(slot(slot(block, k.queue), k.queue_labels), k.s_number, name);
}

// Fills a place of `block`, whose reference the caller holds. Everything is as in record_function.__enter__.
bool fill(PyObject* self, PyObject* block, Py_ssize_t at) {
  put(block, k.next, PyLong_FromSsize_t(at + 1));
  put(self, k.block, Py_NewRef(block));
  put(self, k.at, PyLong_FromSsize_t(at));
  const long long id = PyLong_AsLongLong(slot(block, k.first_id)) + at;
  PyObject* number = PyLong_FromLongLong(id);
  if (number == nullptr) return false;
  put(self, k.user_id, Py_NewRef(number));
  put(self, k.id, number);
  put(self, k.gone, Py_NewRef(Py_False));
  PyObject* outer = nullptr;
  if (PyContextVar_Get(k.current, nullptr, &outer) < 0) return false;
  while (slot(outer, k.gone) == Py_True) {
    PyObject* further = Py_NewRef(slot(outer, k.outer));
    Py_DECREF(outer);
    outer = further;
  }
  PyObject* parent = Py_NewRef(slot(outer, k.id));
  Py_DECREF(outer);
  if (!put_item(slot(block, k.parents), at, parent)) return false;
  if (!put_item(slot(block, k.labels), at, label_of(block, slot(self, k.name)))) return false;
  PyObject* token = PyContextVar_Set(k.current, self);
  if (token == nullptr) return false;
  put(self, k.token, token);
  return put_item(slot(block, k.starts), at, read_clock(block));
}

PyObject* enter(PyObject* self, PyObject*) {
  PyObject* queues = slot(k.gate, k.queues);
  if (queues == Py_None) return Py_NewRef(self);
  Py_INCREF(queues);
  PyObject* block = PyObject_GetAttr(queues, k.s_block);
  PyObject* result = nullptr;
  if (block == nullptr) {
    Py_DECREF(queues);
    return nullptr;
  }
  if (block == Py_None || slot(self, k.block) != Py_None || slot(self, k.args) != Py_None) {
    result = PyObject_CallMethodOneArg(self, k.s_enter_rarely, queues);
  } else {
    Py_ssize_t at = PyLong_AsSsize_t(slot(block, k.next));
    if (at == k.block_size) {
      Py_SETREF(block, PyObject_CallMethodNoArgs(queues, k.s_next_block));
      at = 0;
    }
    if (block != nullptr && fill(self, block, at)) result = Py_NewRef(self);
  }
  Py_XDECREF(block);
  Py_DECREF(queues);
  return result;
}

PyObject* called(PyObject* result) {
  if (result == nullptr) return nullptr;
  Py_DECREF(result);
  Py_RETURN_NONE;
}

// Leaves in the usual way and returns 1; 0 where the case is another, -1 with an exception.
int leave_shortly(PyObject* self, PyObject* block, PyObject* end) {
  PyObject* token = slot(self, k.token);
  if (token == nullptr || !PyContextToken_CheckExact(token)) return 0;
  if (PyContextVar_Reset(k.current, token) < 0) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
    PyErr_Clear();
    return 0;
  }
  PyObject* ends = slot(block, k.ends);
  if (ends == Py_None) return 0;
  const Py_ssize_t at = PyLong_AsSsize_t(slot(self, k.at));
  Py_INCREF(ends);
  const bool is_put = put_item(ends, at, Py_NewRef(end));
  Py_DECREF(ends);
  if (!is_put) return -1;
  put(self, k.block, Py_NewRef(Py_None));
  put(self, k.token, Py_NewRef(Py_None));
  return 1;
}

PyObject* leave(PyObject* self, PyObject* block) {
  PyObject* end = read_clock(block);
  PyObject* current = nullptr;
  if (end == nullptr || PyContextVar_Get(k.current, nullptr, &current) < 0) {
    Py_XDECREF(end);
    return nullptr;
  }
  Py_DECREF(current);  // its context holds it
  int is_left = 0;
  if (current == self) {
    is_left = leave_shortly(self, block, end);
  } else {
    PyObject* again = PyObject_CallMethodOneArg(self, k.s_leave_again, end);
    is_left = again == nullptr ? -1 : again == Py_True;
    Py_XDECREF(again);
  }
  PyObject* result = nullptr;
  if (is_left == 0) {
    PyObject* both[] = {self, end};
    result = called(PyObject_Vectorcall(k.leave, both, 2, nullptr));
  } else if (is_left == 1) {
    result = Py_NewRef(Py_None);
  }
  Py_DECREF(end);
  return result;
}

PyObject* exit_range(PyObject* self, PyObject* const*, Py_ssize_t) {
  PyObject* block = slot(self, k.block);
  if (block == nullptr || block == Py_None) {
    if (slot(k.gate, k.queues) == Py_None) Py_RETURN_NONE;
    return called(PyObject_CallMethodOneArg(self, k.s_leave_again, k.minus_one));
  }
  Py_INCREF(block);
  PyObject* result = leave(self, block);
  Py_DECREF(block);
  return result;
}

// record_function(name): the class called with one text. Everything else is called as classes are.
PyObject* construct(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* keywords) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (n == 1 && keywords == nullptr && PyUnicode_CheckExact(args[0]) && type == reinterpret_cast<PyObject*>(k.range)) {
    PyObject* made = k.range->tp_alloc(k.range, 0);
    if (made == nullptr) return nullptr;
    slot(made, k.name) = Py_NewRef(args[0]);
    slot(made, k.args) = Py_NewRef(Py_None);
    slot(made, k.block) = Py_NewRef(Py_None);
    return made;
  }
  PyObject* positional = PyTuple_New(n);
  PyObject* named = keywords == nullptr ? nullptr : PyDict_New();
  bool is_ready = positional != nullptr && (keywords == nullptr || named != nullptr);
  for (Py_ssize_t i = 0; is_ready && i < n; ++i) PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; is_ready && keywords != nullptr && i < PyTuple_GET_SIZE(keywords); ++i) {
    is_ready = PyDict_SetItem(named, PyTuple_GET_ITEM(keywords, i), args[n + i]) == 0;
  }
  PyObject* made = is_ready ? PyType_Type.tp_call(type, positional, named) : nullptr;
  Py_XDECREF(positional);
  Py_XDECREF(named);
  return made;
}

PyMethodDef enter_method = {"__enter__", enter, METH_NOARGS, nullptr};
PyMethodDef exit_method = {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exit_range)),
                           METH_FASTCALL, nullptr};

bool find_slots(PyObject* range, PyObject* gate, PyObject* block, PyObject* queue) {
  return offset_of(gate, "queues", &k.queues) && offset_of(range, "name", &k.name) && offset_of(range, "args", &k.args) &&
         offset_of(range, "block", &k.block) && offset_of(range, "at", &k.at) && offset_of(range, "id", &k.id) &&
         offset_of(range, "user_id", &k.user_id) && offset_of(range, "gone", &k.gone) &&
         offset_of(range, "outer", &k.outer) && offset_of(range, "token", &k.token) && offset_of(block, "next", &k.next) &&
         offset_of(block, "first_id", &k.first_id) && offset_of(block, "starts", &k.starts) &&
         offset_of(block, "ends", &k.ends) && offset_of(block, "parents", &k.parents) &&
         offset_of(block, "labels", &k.labels) && offset_of(block, "names", &k.names) &&
         offset_of(block, "clock", &k.read) && offset_of(block, "queue", &k.queue) &&
         offset_of(queue, "labels", &k.queue_labels);
}

}  // namespace

// Returns (__enter__, __exit__) for the class, with the GIL held; nullptr with an exception.
//
// `parts`: (record_function, GATE, Block, Queue, CURRENT, time.perf_counter_ns, leave, BLOCK_SIZE).
DEVPROF_EXPORT PyObject* devprof_ranges_methods(PyObject* parts) {
  PyObject *range, *gate, *block, *queue, *current, *clock, *leave_function;
  if (!PyArg_ParseTuple(parts, "OOOOOOOn", &range, &gate, &block, &queue, &current, &clock, &leave_function, &k.block_size)) {
    return nullptr;
  }
  if (!find_slots(range, reinterpret_cast<PyObject*>(Py_TYPE(gate)), block, queue)) return nullptr;
  k.range = reinterpret_cast<PyTypeObject*>(Py_NewRef(range));
  k.gate = Py_NewRef(gate);
  k.current = Py_NewRef(current);
  k.clock = Py_NewRef(clock);
  k.leave = Py_NewRef(leave_function);
  k.s_block = PyUnicode_InternFromString("block");
  k.s_next_block = PyUnicode_InternFromString("next_block");
  k.s_enter_rarely = PyUnicode_InternFromString("_enter_rarely");
  k.s_leave_again = PyUnicode_InternFromString("_leave_again");
  k.s_number = PyUnicode_InternFromString("number");
  k.minus_one = PyLong_FromLong(-1);
  PyObject* entering = PyDescr_NewMethod(k.range, &enter_method);
  PyObject* leaving = PyDescr_NewMethod(k.range, &exit_method);
  return Py_BuildValue("(NN)", entering, leaving);
}

// Lets the class be called directly (1) or as classes are (0).
DEVPROF_EXPORT void devprof_ranges_construct(int is_direct) {
  k.range->tp_vectorcall = is_direct != 0 ? construct : nullptr;
}
