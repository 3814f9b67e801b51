#!/usr/bin/env python3
"""Writes the operator cases of the ONNX standard as folders that `mlc verify` reads.

    pip install onnx==1.23.2
    python generate.py DIR              all 1884 cases, 57 MB
    python generate.py DIR --few LIST   those named in the file LIST

The cases are those that the package (Apache-2.0, (c) ONNX Project Contributors) keeps in memory for its backend tests.
"""
import os
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


def message(value, info):
    kind = info.type.WhichOneof("value")
    if isinstance(value, onnx.TensorProto):
        return value
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        if value is None:
            return onnx.OptionalProto(name=info.name, elem_type=onnx.OptionalProto.UNDEFINED)
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(np.asarray(value), info.name)


def write(path, proto):
    with open(path, "wb") as file:
        file.write(proto.SerializeToString(deterministic=True))


def main():
    out, names = sys.argv[1], None
    if len(sys.argv) == 4 and sys.argv[2] == "--few":
        names = set(open(sys.argv[3]).read().split())
    count = 0
    for case in load_model_tests(kind="node"):
        if names is not None and case.name not in names:
            continue
        folder = os.path.join(out, case.name)
        os.makedirs(folder, exist_ok=True)
        write(os.path.join(folder, "model.onnx"), case.model)
        for s, (inputs, outputs) in enumerate(case.data_sets):
            data = os.path.join(folder, f"test_data_set_{s}")
            os.makedirs(data, exist_ok=True)
            for what, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
                for i, value in enumerate(values):
                    write(os.path.join(data, f"{what}_{i}.pb"), message(value, infos[i]))
        count += 1
    print(f"onnx {onnx.__version__}: {count} cases")


main()
