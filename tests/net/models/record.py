#!/usr/bin/env python3
# record.py: writes NAME.txt, the names and shapes of the state dicts of public models, one a line, sorted.
# torchvision makes those of its models (BSD-3-Clause); those of Hugging Face's GPT2Model and BertModel (Apache-2.0) are
# written here from their published naming. Counters of batches are left out: mlc keeps none.
#     python3 tests/net/models/record.py
import os

import torchvision


def write(name, shapes):
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, name + ".txt"), "w") as file:
        for key in sorted(shapes):
            file.write(f"{key} f32[{', '.join(map(str, shapes[key]))}]\n")


def of_torchvision(model):
    return {k: tuple(v.shape) for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}


def linear(shapes, path, inputs, outputs, transposed=False):
    shapes[path + ".weight"] = (inputs, outputs) if transposed else (outputs, inputs)
    shapes[path + ".bias"] = (outputs,)


def norm(shapes, path, width):
    shapes[path + ".weight"] = shapes[path + ".bias"] = (width,)


def gpt2(width=768, layers=12, vocab=50257, context=1024):
    shapes = {"wte.weight": (vocab, width), "wpe.weight": (context, width)}
    for i in range(layers):
        norm(shapes, f"h.{i}.ln_1", width)
        norm(shapes, f"h.{i}.ln_2", width)
        linear(shapes, f"h.{i}.attn.c_attn", width, 3 * width, transposed=True)
        linear(shapes, f"h.{i}.attn.c_proj", width, width, transposed=True)
        linear(shapes, f"h.{i}.mlp.c_fc", width, 4 * width, transposed=True)
        linear(shapes, f"h.{i}.mlp.c_proj", 4 * width, width, transposed=True)
    norm(shapes, "ln_f", width)
    return shapes


def bert(width=768, layers=12, vocab=30522, context=512):
    shapes = {
        "embeddings.word_embeddings.weight": (vocab, width),
        "embeddings.position_embeddings.weight": (context, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    norm(shapes, "embeddings.LayerNorm", width)
    for i in range(layers):
        path = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            linear(shapes, f"{path}.attention.self.{part}", width, width)
        linear(shapes, f"{path}.attention.output.dense", width, width)
        norm(shapes, f"{path}.attention.output.LayerNorm", width)
        linear(shapes, f"{path}.intermediate.dense", width, 4 * width)
        linear(shapes, f"{path}.output.dense", 4 * width, width)
        norm(shapes, f"{path}.output.LayerNorm", width)
    linear(shapes, "pooler.dense", width, width)
    return shapes


write("resnet18", of_torchvision(torchvision.models.resnet18()))
write("resnet50", of_torchvision(torchvision.models.resnet50()))
write("mobilenetv2", of_torchvision(torchvision.models.mobilenet_v2()))
write("mobilenetv2_quarter", of_torchvision(torchvision.models.mobilenet_v2(width_mult=0.25)))
write("gpt2", gpt2())
write("bert", bert())
