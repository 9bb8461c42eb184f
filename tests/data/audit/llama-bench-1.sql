CREATE TABLE IF NOT EXISTS llama_bench (
  build_commit TEXT,
  build_number TEXT,
  cpu_info TEXT,
  gpu_info TEXT,
  backends TEXT,
  model_filename TEXT,
  model_type TEXT,
  model_size TEXT,
  model_n_params TEXT,
  n_batch TEXT,
  n_ubatch TEXT,
  n_threads TEXT,
  type_k TEXT,
  type_v TEXT,
  n_gpu_layers TEXT,
  flash_attn TEXT,
  n_prompt TEXT,
  n_gen TEXT,
  n_depth TEXT,
  test_time TEXT,
  avg_ns TEXT,
  stddev_ns TEXT,
  avg_ts TEXT,
  stddev_ts TEXT
);

INSERT INTO llama_bench (build_commit, build_number, cpu_info, gpu_info, backends, model_filename, model_type, model_size, model_n_params, n_batch, n_ubatch, n_threads, type_k, type_v, n_gpu_layers, flash_attn, n_prompt, n_gen, n_depth, test_time, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('5f2c8d1a4', '9120', 'Ryzen', 'NVIDIA GeForce RTX 3060', 'CUDA', 'l8.gguf', 'llama 8B Q4_K - Medium', '4917756928', '8030261248', '2048', '512', '6', 'f16', 'f16', '99', '1', '0', '128', '0', '2026-05-04T08:00:00Z', '2319800000', '9000000', '55.177266344093724', '0.2');
