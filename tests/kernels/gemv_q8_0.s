_Z11gemv_nativeILi0ELi1ELi2EEvPKh11ActivationsPfi: ; @_Z11gemv_nativeILi0ELi1ELi2EEvPKh11ActivationsPfi
; %bb.0:
	s_load_dword s0, s[4:5], 0x18
	v_lshrrev_b32_e32 v1, 5, v0
	v_and_b32_e32 v11, 31, v0
	s_lshl_b32 s8, s6, 1
	v_mov_b32_e32 v2, 0
	s_waitcnt lgkmcnt(0)
	s_ashr_i32 s1, s0, 31
	s_lshr_b32 s1, s1, 24
	s_add_i32 s0, s0, s1
	s_ashr_i32 s9, s0, 8
	v_cmp_gt_i32_e32 vcc, s9, v1
	v_mov_b32_e32 v4, 0
	s_and_saveexec_b64 s[6:7], vcc
	s_cbranch_execz .LBB0_4
; %bb.1:
	v_lshrrev_b32_e32 v2, 2, v11
	v_mul_u32_u24_e32 v12, 34, v2
	v_lshlrev_b32_e32 v2, 3, v0
	v_mov_b32_e32 v4, 0
	v_and_b32_e32 v3, 24, v2
	v_and_b32_e32 v2, 0xf8, v2
	s_load_dwordx4 s[0:3], s[4:5], 0x0
	s_load_dwordx2 s[10:11], s[4:5], 0x10
	v_lshl_or_b32 v9, v1, 8, v2
	v_mov_b32_e32 v2, v4
	v_mov_b32_e32 v6, s9
	v_mad_u64_u32 v[15:16], s[12:13], s8, v6, v[1:2]
	s_ashr_i32 s14, s8, 31
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v5, s3
	v_add_co_u32_e32 v2, vcc, s2, v9
	s_mul_i32 s2, s14, s9
	v_addc_co_u32_e32 v8, vcc, 0, v5, vcc
	v_add_u32_e32 v7, s2, v16
	s_movk_i32 s12, 0x110
	v_mov_b32_e32 v6, s1
	v_mul_lo_u32 v19, v7, s12
	v_add_co_u32_e32 v7, vcc, 4, v2
	v_lshrrev_b32_e32 v2, 3, v9
	v_mov_b32_e32 v5, s0
	v_addc_co_u32_e32 v8, vcc, 0, v8, vcc
	v_and_b32_e32 v2, 0x7c, v2
	v_mad_u64_u32 v[5:6], s[2:3], v15, s12, v[5:6]
	v_add_co_u32_e32 v9, vcc, s10, v2
	s_add_u32 s10, s8, 1
	s_addc_u32 s2, s14, 0
	v_mov_b32_e32 v10, s11
	s_mul_i32 s11, s2, s9
	s_mul_i32 s2, s10, s9
	v_mul_hi_u32_u24_e32 v14, 0x110, v1
	v_mul_u32_u24_e32 v13, 0x110, v1
	v_mov_b32_e32 v2, 0x110
	v_mad_u64_u32 v[16:17], s[2:3], s2, v2, v[13:14]
	s_mul_hi_u32 s2, s10, s9
	s_add_i32 s2, s2, s11
	v_addc_co_u32_e32 v10, vcc, 0, v10, vcc
	s_mulk_i32 s2, 0x110
	v_add_u32_e32 v2, s2, v17
	v_add_co_u32_e32 v13, vcc, v16, v3
	v_addc_co_u32_e32 v14, vcc, 0, v2, vcc
	v_mov_b32_e32 v17, s1
	v_add_co_u32_e32 v13, vcc, s0, v13
	v_addc_co_u32_e32 v14, vcc, v17, v14, vcc
	v_mad_u64_u32 v[17:18], s[2:3], v15, s12, v[3:4]
	v_mov_b32_e32 v20, s1
	v_add_co_u32_e32 v3, vcc, s0, v16
	v_addc_co_u32_e32 v15, vcc, v20, v2, vcc
	v_add_u32_e32 v2, v19, v18
	v_mov_b32_e32 v18, s1
	v_add_co_u32_e32 v16, vcc, s0, v17
	v_add_u32_e32 v6, v19, v6
	v_addc_co_u32_e32 v17, vcc, v18, v2, vcc
	s_mov_b64 s[2:3], 0
	s_movk_i32 s10, 0x400
	s_movk_i32 s11, 0x440
	v_mov_b32_e32 v18, v1
	v_mov_b32_e32 v2, v4
.LBB0_2:                                ; =>This Inner Loop Header: Depth=1
	v_add_co_u32_e32 v19, vcc, v5, v12
	v_addc_co_u32_e32 v20, vcc, 0, v6, vcc
	global_load_ushort v27, v[19:20], off
	v_add_co_u32_e32 v19, vcc, v16, v12
	v_addc_co_u32_e32 v20, vcc, 0, v17, vcc
	v_add_co_u32_e32 v21, vcc, v3, v12
	v_addc_co_u32_e32 v22, vcc, 0, v15, vcc
	global_load_ushort v28, v[21:22], off
	v_add_co_u32_e32 v21, vcc, v13, v12
	v_addc_co_u32_e32 v22, vcc, 0, v14, vcc
	global_load_dwordx2 v[19:20], v[19:20], off offset:2
	s_nop 0
	global_load_dwordx2 v[23:24], v[21:22], off offset:2
	global_load_dwordx2 v[25:26], v[7:8], off offset:-4
	global_load_dword v29, v[9:10], off
	; sched_barrier mask(0x00000000)
	s_waitcnt vmcnt(5)
	v_cvt_f32_f16_e32 v21, v27
	s_waitcnt vmcnt(1)
	v_dot4_i32_i8 v19, v19, v25, 0
	v_add_co_u32_e32 v7, vcc, s10, v7
	v_cvt_f32_i32_e32 v19, v19
	v_addc_co_u32_e32 v8, vcc, 0, v8, vcc
	v_add_co_u32_e32 v5, vcc, s11, v5
	v_addc_co_u32_e32 v6, vcc, 0, v6, vcc
	s_waitcnt vmcnt(0)
	v_mul_f32_e32 v21, v29, v21
	v_add_co_u32_e32 v9, vcc, 0x80, v9
	v_cvt_f32_f16_e32 v22, v28
	v_fmac_f32_e32 v4, v21, v19
	v_dot4_i32_i8 v19, v23, v25, 0
	v_addc_co_u32_e32 v10, vcc, 0, v10, vcc
	v_cvt_f32_i32_e32 v19, v19
	v_dot4_i32_i8 v20, v20, v26, 0
	v_dot4_i32_i8 v23, v24, v26, 0
	v_add_co_u32_e32 v13, vcc, 0x440, v13
	v_cvt_f32_i32_e32 v20, v20
	v_cvt_f32_i32_e32 v23, v23
	v_addc_co_u32_e32 v14, vcc, 0, v14, vcc
	v_add_co_u32_e32 v3, vcc, 0x440, v3
	v_mul_f32_e32 v22, v29, v22
	v_add_u32_e32 v18, 4, v18
	v_addc_co_u32_e32 v15, vcc, 0, v15, vcc
	v_fmac_f32_e32 v2, v22, v19
	v_add_co_u32_e32 v16, vcc, 0x440, v16
	v_cmp_le_i32_e64 s[0:1], s9, v18
	v_fmac_f32_e32 v4, v21, v20
	v_fmac_f32_e32 v2, v22, v23
	s_or_b64 s[2:3], s[0:1], s[2:3]
	v_addc_co_u32_e32 v17, vcc, 0, v17, vcc
	s_andn2_b64 exec, exec, s[2:3]
	s_cbranch_execnz .LBB0_2
; %bb.3:
	s_or_b64 exec, exec, s[2:3]
.LBB0_4:
	s_or_b64 exec, exec, s[6:7]
	v_mbcnt_lo_u32_b32 v3, -1, 0
	v_mbcnt_hi_u32_b32 v7, -1, v3
	v_and_b32_e32 v3, 0x60, v7
	v_add_u32_e32 v9, 32, v3
	v_xor_b32_e32 v3, 16, v7
	v_cmp_lt_i32_e32 vcc, v3, v9
	v_cndmask_b32_e32 v3, v7, v3, vcc
	v_lshlrev_b32_e32 v3, 2, v3
	ds_bpermute_b32 v5, v3, v4
	v_xor_b32_e32 v6, 8, v7
	v_cmp_lt_i32_e32 vcc, v6, v9
	v_xor_b32_e32 v8, 4, v7
	v_xor_b32_e32 v10, 2, v7
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v5, v4, v5
	v_cndmask_b32_e32 v4, v7, v6, vcc
	v_lshlrev_b32_e32 v4, 2, v4
	ds_bpermute_b32 v6, v4, v5
	v_cmp_lt_i32_e32 vcc, v8, v9
	v_xor_b32_e32 v12, 1, v7
	v_lshlrev_b32_e32 v1, 3, v1
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v6, v5, v6
	v_cndmask_b32_e32 v5, v7, v8, vcc
	v_lshlrev_b32_e32 v5, 2, v5
	ds_bpermute_b32 v8, v5, v6
	v_cmp_lt_i32_e32 vcc, v10, v9
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v8, v6, v8
	v_cndmask_b32_e32 v6, v7, v10, vcc
	v_lshlrev_b32_e32 v6, 2, v6
	ds_bpermute_b32 v10, v6, v8
	v_cmp_lt_i32_e32 vcc, v12, v9
	v_cndmask_b32_e32 v7, v7, v12, vcc
	v_lshlrev_b32_e32 v7, 2, v7
	v_cmp_eq_u32_e32 vcc, 0, v11
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v8, v8, v10
	ds_bpermute_b32 v9, v7, v8
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB0_6
; %bb.5:
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v8, v8, v9
	ds_write_b32 v1, v8
.LBB0_6:
	s_or_b64 exec, exec, s[0:1]
	ds_bpermute_b32 v3, v3, v2
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v2, v2, v3
	ds_bpermute_b32 v3, v4, v2
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v2, v2, v3
	ds_bpermute_b32 v3, v5, v2
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v2, v2, v3
	ds_bpermute_b32 v3, v6, v2
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v2, v2, v3
	ds_bpermute_b32 v3, v7, v2
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB0_8
; %bb.7:
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v2, v2, v3
	ds_write_b32 v1, v2 offset:4
.LBB0_8:
	s_or_b64 exec, exec, s[0:1]
	v_cmp_gt_u32_e32 vcc, 2, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB0_10
; %bb.9:
	v_lshlrev_b32_e32 v3, 2, v0
	ds_read2_b32 v[1:2], v3 offset1:2
	ds_read2_b32 v[3:4], v3 offset0:4 offset1:6
	s_load_dwordx2 s[0:1], s[4:5], 0x20
	s_ashr_i32 s2, s8, 31
	v_or_b32_e32 v0, s8, v0
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v1, v1, v2
	v_add_f32_e32 v1, v1, v3
	v_add_f32_e32 v2, v1, v4
	v_mov_b32_e32 v1, s2
	v_lshlrev_b64 v[0:1], 2, v[0:1]
	v_mov_b32_e32 v3, s1
	v_add_co_u32_e32 v0, vcc, s0, v0
	v_addc_co_u32_e32 v1, vcc, v3, v1, vcc
	global_store_dword v[0:1], v2, off
.LBB0_10:
	s_endpgm
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
	.amdhsa_kernel _Z11gemv_nativeILi0ELi1ELi2EEvPKh11ActivationsPfi
		.amdhsa_group_segment_fixed_size 32
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 44
		.amdhsa_user_sgpr_count 6
		.amdhsa_user_sgpr_private_segment_buffer 1
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_flat_scratch_init 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_system_sgpr_private_segment_wavefront_offset 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 30
		.amdhsa_next_free_sgpr 15
		.amdhsa_reserve_vcc 1
		.amdhsa_reserve_flat_scratch 0
		.amdhsa_reserve_xnack_mask 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.section	.text._Z11gemv_nativeILi0ELi1ELi2EEvPKh11ActivationsPfi,"axG",@progbits,_Z11gemv_nativeILi0ELi1ELi2EEvPKh11ActivationsPfi,comdat
.Lfunc_end0:
