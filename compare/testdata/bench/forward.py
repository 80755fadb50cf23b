"""What a script does by itself to see inside a model: load it, run one forward with a hook on every module, save what they gave.

    python forward.py MODEL IDS OUT      # IDS: 2,513,88
"""

import sys

import torch
import transformers
from safetensors.torch import save_file


def main():
    model, ids, out = sys.argv[1:]
    transformers.utils.logging.disable_progress_bar()
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        model, dtype=torch.bfloat16, attn_implementation="eager", local_files_only=True
    ).eval()
    seen = {}

    def keep(name):
        def hook(module, args, output):
            first = output[0] if isinstance(output, tuple) else output
            if isinstance(first, torch.Tensor):
                seen[name] = first.detach().clone().contiguous()

        return hook

    for name, module in loaded.named_modules():
        module.register_forward_hook(keep(name or "model"))
    with torch.no_grad():
        logits = loaded(torch.tensor([[int(x) for x in ids.split(",")]])).logits
    seen["logits"] = logits.clone()
    save_file(seen, out)


if __name__ == "__main__":
    main()
