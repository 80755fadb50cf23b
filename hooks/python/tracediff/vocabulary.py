"""The operations of a recorded program: their names, and which arguments are operands.

An operation keeps torch's name without the marks of variants: `add_`, `add.Tensor` and `add.Scalar` are all "add". Its
tensors, and the numbers that stand in place of a tensor, are operands; every other argument with a value other than the
default is an attribute with torch's name.
"""

from typing import Any

# Names that differ by more than marks.
NAMES = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_to_copy": "to",
    "clone": "to",
    "copy": "to",
    "zero": "fill",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
    "_index_put_impl": "index_put",
    "_unsafe_index": "index",
    "_unsafe_index_put": "index_put",
    "linalg_vector_norm": "vector_norm",
    "var_mean": "var_mean",
    "constant_pad_nd": "pad",
    "_local_scalar_dense": "guard",
}

# Arguments of the type Scalar that are operands: the numbers of an expression.
OPERAND_SCALARS = {"other", "exponent", "self", "value", "fill_value", "min", "max"}
# For these operations a scalar named `value`, `min` or `max` is a setting, not an operand.
SETTINGS = {
    "pad": {"value"},
    "clamp": {"min", "max"},
    "addcmul": {"value"},
    "addcdiv": {"value"},
    "hardtanh": {"min", "max"},
}

# Operations that make memory of a tensor's shape, whatever numbers are in that tensor.
FACTORIES = {
    "aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::empty_like", "aten::new_zeros", "aten::new_ones",
    "aten::new_full", "aten::new_empty", "aten::new_empty_strided", "aten::rand_like", "aten::randn_like",
}  # fmt: skip

# Arguments about where and how memory is taken; the result has its dtype in the program.
SILENT = {
    "dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "implicit", "half_to_float", "out",
    "generator", "copy",
}  # fmt: skip

KINDS = {
    "move": (
        "to embedding cat index topk masked_fill gather relu stack scatter pad clamp neg max repeat where maximum abs "
        "minimum min index_select index_put fill write bits flip roll tril triu slice_scatter select_scatter sort "
        "split_with_sizes_copy index_copy masked_scatter amax amin argmax argmin one_hot conj real imag"
    ),
    "arithmetic": "add mul div sub reciprocal rsub index_add addcmul addcdiv remainder floor round sign scatter_add",
    "function": (
        "pow rsqrt silu sigmoid gelu exp softplus tanh sqrt log_sigmoid log_sigmoid_forward expm1 log log1p cos sin erf "
        "elu leaky_relu hardtanh mish hardswish square polar"
    ),
    "sum": "mean sum cumsum vector_norm var std prod var_mean",
    "row": "softmax log_softmax native_layer_norm logsumexp native_group_norm native_batch_norm",
    "product": (
        "bmm mm addmm convolution linalg_solve_triangular baddbmm dot mv _scaled_dot_product_flash_attention_for_cpu "
        "_grouped_mm"
    ),
    "integer": (
        "eq ne lt le gt ge logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not bitwise_xor nonzero "
        "histc bincount any all floor_divide isin searchsorted bucketize isnan isinf isfinite count_nonzero unique_dim"
    ),
    "guard": "guard",
}

# The kind of each operation; an operation without a kind is recorded by torch's name.
KIND = {op: kind for kind, ops in KINDS.items() for op in ops.split()}


def canonical(func: Any) -> str:
    """Return a program's name of a torch operation."""
    name = func._schema.name.removeprefix("aten::")
    short = name.rstrip("_") if not name.endswith("__") else name
    return NAMES.get(short, short)


def is_operand(op: str, argument: str) -> bool:
    """Report whether a number under this argument is an operand, and not a setting."""
    return argument in OPERAND_SCALARS and argument not in SETTINGS.get(op, ())
