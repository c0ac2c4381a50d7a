# Two nodes; the shape of the network comes with the model.
NNODES=2 \
NODE_RANK=$RANK \
NPROC_PER_NODE=8 \
MASTER_ADDR=$MASTER_ADDR \
megatron sft \
    --model Qwen/Qwen2.5-32B \
    --load_safetensors true \
    --tensor_model_parallel_size 4 \
    --pipeline_model_parallel_size 2 \
    --sequence_parallel true \
    --micro_batch_size 1 \
    --global_batch_size 32 \
    --recompute_granularity full \
    --recompute_method uniform \
    --recompute_num_layers 1 \
    --max_length 8192 \
    --packing true \
    --cross_entropy_loss_fusion true \
    --save output/Qwen2.5-32B
