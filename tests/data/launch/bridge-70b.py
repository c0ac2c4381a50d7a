# Overrides of a recipe, as a fine-tuning script has them.
from megatron.bridge.recipes.llama import llama3_70b_pretrain_config

cfg = llama3_70b_pretrain_config()
cfg.model.tensor_model_parallel_size = 4
cfg.model.pipeline_model_parallel_size = 4
cfg.model.virtual_pipeline_model_parallel_size = 5
cfg.model.context_parallel_size = 2
cfg.model.sequence_parallel = True
cfg.model.seq_length = 8192
cfg.train.micro_batch_size = 1
cfg.train.global_batch_size = 256
cfg.mixed_precision = "bf16_mixed"
cfg.ddp.grad_reduce_in_fp32 = False
