#!/bin/bash
python3 -m MaxText.train MaxText/configs/base.yml model_name=llama3.1-8b hardware=gpu \
  run_name=test attention=cudnn_flash_te dtype=bfloat16 remat_policy=full \
  dcn_data_parallelism=2 ici_fsdp_parallelism=8 ici_tensor_parallelism=1 \
  per_device_batch_size=2 gradient_accumulation_steps=1 max_target_length=8192 steps=20
