//! Constants and coefficients of our own fit: weighted least squares made minimax by Lawson's iteration, in sixty digits; the
//! first coefficients are rounded one after the other, each time the others fitted anew.

use super::expr::{FloatBits, Table};

/// The base-2 logarithm of e, rounded.
pub(super) const LOG2_E_HI: FloatBits = FloatBits(0x3fb8_aa3b, 0x3ff7_1547_652b_82fe);

/// What `LOG2_E_HI` leaves of it.
pub(super) const LOG2_E_LO: FloatBits = FloatBits(0x32a5_7060, 0x3c77_77d0_ffda_0d24);

/// The natural logarithm of 2, rounded.
pub(super) const LN_2_HI: FloatBits = FloatBits(0x3f31_7218, 0x3fe6_2e42_fefa_39ef);

/// What `LN_2_HI` leaves of it.
pub(super) const LN_2_LO: FloatBits = FloatBits(0xb102_e308, 0x3c7a_bc9e_3b39_803f);

/// The natural logarithm of 2, its first bits: products with exponents are exact.
pub(super) const LN_2_TOP: FloatBits = FloatBits(0x3f31_7200, 0x3fe6_2e42_fefa_4000);

/// What `LN_2_TOP` leaves of it.
pub(super) const LN_2_REST: FloatBits = FloatBits(0x35bf_be8e, 0xbd48_432a_1b0e_2634);

/// The base-10 logarithm of 2, rounded.
pub(super) const LOG10_2_HI: FloatBits = FloatBits(0x3e9a_209b, 0x3fd3_4413_509f_79ff);

/// What `LOG10_2_HI` leaves of it.
pub(super) const LOG10_2_LO: FloatBits = FloatBits(0xb276_0860, 0xbc49_dc1d_a994_fd21);

/// The base-10 logarithm of 2, its first bits: products with exponents are exact.
pub(super) const LOG10_2_TOP: FloatBits = FloatBits(0x3e9a_2000, 0x3fd3_4413_509f_8000);

/// What `LOG10_2_TOP` leaves of it.
pub(super) const LOG10_2_REST: FloatBits = FloatBits(0x369a_84fc, 0xbd38_0433_b83b_532a);

/// The base-10 logarithm of e, rounded.
pub(super) const LOG10_E_HI: FloatBits = FloatBits(0x3ede_5bd9, 0x3fdb_cb7b_1526_e50e);

/// What `LOG10_E_HI` leaves of it.
pub(super) const LOG10_E_LO: FloatBits = FloatBits(0xb22d_91af, 0x3c69_5355_baaa_fad3);

/// The base-2 logarithm of 10.
pub(super) const LOG2_10: FloatBits = FloatBits(0x4054_9a78, 0x400a_934f_0979_a371);

/// What `LOG2_10` leaves of it.
pub(super) const LOG2_10_LO: FloatBits = FloatBits(0x3397_9a37, 0x3ca7_f249_5fb7_fa6d);

/// The natural logarithm of 10, rounded.
pub(super) const LN_10_HI: FloatBits = FloatBits(0x4013_5d8e, 0x4002_6bb1_bbb5_5516);

/// What `LN_10_HI` leaves of it.
pub(super) const LN_10_LO: FloatBits = FloatBits(0xb309_555d, 0xbcaf_48ad_494e_a3e9);

/// `2 / log 2`, rounded.
pub(super) const POW_1_HI: FloatBits = FloatBits(0x4038_aa3b, 0x4007_1547_652b_82fe);

/// What `POW_1_HI` leaves of it.
pub(super) const POW_1_LO: FloatBits = FloatBits(0x3325_7060, 0x3c87_77d0_ffda_0d24);

/// `2 / (3 log 2)`, rounded.
pub(super) const POW_3_HI: FloatBits = FloatBits(0x3f76_384f, 0x3fee_c709_dc3a_03fd);

/// What `POW_3_HI` leaves of it.
pub(super) const POW_3_LO: FloatBits = FloatBits(0xb1f1_7f01, 0x3c8d_27f0_5548_af0c);

/// The first part of half of pi.
pub(super) const PI_2_A: FloatBits = FloatBits(0x3fc9_0fdb, 0x3ff9_21fb_5444_2d18);

/// The second part.
pub(super) const PI_2_B: FloatBits = FloatBits(0xb33b_bd2e, 0x3c91_a626_3314_5c07);

/// The third part.
pub(super) const PI_2_C: FloatBits = FloatBits(0xa6f7_2ced, 0xb91f_1976_b7ed_8fbc);

/// Two numbers whose product is half of pi but for 6e-14; f32 only.
pub(super) const PI_2_FACTORS: (FloatBits, FloatBits) =
    (FloatBits(0x3f20_6d38, 0), FloatBits(0x4020_6bfa, 0));

/// 2 / pi.
pub(super) const TWO_BY_PI: FloatBits = FloatBits(0x3f22_f983, 0x3fe4_5f30_6dc9_c883);

/// Pi, rounded.
pub(super) const PI_HI: FloatBits = FloatBits(0x4049_0fdb, 0x4009_21fb_5444_2d18);

/// What `PI_HI` leaves of it.
pub(super) const PI_LO: FloatBits = FloatBits(0xb3bb_bd2e, 0x3ca1_a626_3314_5c07);

/// 2 / pi in binary behind the point.
pub(super) const TWO_BY_PI_32: [u32; 6] = [
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
];

/// The same, of more bits.
pub(super) const TWO_BY_PI_64: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// `(e^r - 1 - r) / r^2` for `|r|` up to half of log 2.
pub(super) const EXP: Table = Table {
    single: &[
        0x3f00_0000,
        0x3e2a_aa47,
        0x3d2a_aa6c,
        0x3c09_1dfb,
        0x3ab6_afa1,
    ],
    double: &[
        0x3fe0_0000_0000_0000,
        0x3fc5_5555_5555_555c,
        0x3fa5_5555_5555_5559,
        0x3f81_1111_1110_e9db,
        0x3f56_c16c_16c1_48ba,
        0x3f2a_01a0_1b45_790f,
        0x3efa_01a0_1afc_8fc5,
        0x3ec7_1dde_e39e_ba11,
        0x3e92_7e4c_7385_39ba,
        0x3e5a_f6ee_e566_4304,
        0x3e21_f933_78d9_f9cb,
    ],
};

/// `(2^r - 1 - r log 2) / r^2` for `|r|` up to 1/2.
pub(super) const EXP2: Table = Table {
    single: &[
        0x3e75_fdf0,
        0x3d63_57c2,
        0x3c1d_951f,
        0x3aaf_8345,
        0x3922_17f3,
    ],
    double: &[
        0x3fce_bfbd_ff82_c58f,
        0x3fac_6b08_d704_a0c8,
        0x3f83_b2ab_6fba_4d7d,
        0x3f55_d87f_e78a_3684,
        0x3f24_3091_2f8a_a60e,
        0x3eef_fcbf_c70f_8e6d,
        0x3eb6_2c02_15e6_ec85,
        0x3e7b_524e_43b1_2457,
        0x3e3e_4d21_3836_94df,
        0x3dfe_9f82_3dd0_300e,
        0x3dbc_0cb2_7af0_742b,
    ],
};

/// `(10^r - 1 - r log 10) / r^2` for `|r|` up to half of the base-10 logarithm of 2.
pub(super) const EXP10: Table = Table {
    single: &[],
    double: &[
        0x4005_3524_c73c_ea69,
        0x4000_4705_91de_2ca9,
        0x3ff2_bd76_09fd_96e5,
        0x3fe1_429f_fd1d_2817,
        0x3fca_7ed7_0852_1bd0,
        0x3fb1_6e4d_fd04_8839,
        0x3f94_116a_ec51_c360,
        0x3f74_8978_21ff_35f7,
        0x3f52_ea8d_3cef_a8e5,
        0x3f2f_c06f_bf0e_1cd8,
        0x3f07_f076_5771_89e9,
    ],
};

/// The same as `EXP`, relative to `e^r - 1`.
pub(super) const EXPM1: Table = Table {
    single: &[
        0x3f00_0000,
        0x3e2a_aaab,
        0x3d2a_aa78,
        0x3c08_87ee,
        0x3ab6_a1c6,
        0x3951_4ea5,
    ],
    double: &[
        0x3fe0_0000_0000_0000,
        0x3fc5_5555_5555_5555,
        0x3fa5_5555_5555_5557,
        0x3f81_1111_1111_130d,
        0x3f56_c16c_16c1_5773,
        0x3f2a_01a0_19f1_1a79,
        0x3efa_01a0_1ab1_a0f9,
        0x3ec7_1de3_e3fe_b31b,
        0x3e92_7e4d_1302_a3af,
        0x3e5a_e567_79c6_e04a,
        0x3e21_f840_a54c_609f,
        0x3de7_3fc1_e643_4379,
    ],
};

/// `(log(1 + r) - r + r^2 / 2) / r^3` for r from -1/4 to 1/2 (f64: -1/3 to 1/3).
pub(super) const LOG: Table = Table {
    single: &[
        0x3eaa_aad2,
        0xbe80_0023,
        0x3e4c_b4bc,
        0xbe2a_771c,
        0x3e14_420d,
        0xbe06_cc4e,
        0x3dd6_671f,
        0xbd38_c79c,
    ],
    double: &[
        0x3fd5_5555_5555_553a,
        0xbfcf_ffff_ffff_fea5,
        0x3fc9_9999_9999_fc5e,
        0xbfc5_5555_5556_ebf9,
        0x3fc2_4924_920d_477a,
        0xbfbf_ffff_fe93_9e21,
        0x3fbc_71c7_3fde_0c54,
        0xbfb9_9999_ef21_be2f,
        0x3fb7_45cb_7c75_b5b0,
        0xbfb5_5549_620b_1001,
        0x3fb3_b1d9_1c4d_c9f3,
        0xbfb2_4a32_fdd9_3aaf,
        0x3fb1_06b4_6d84_c03d,
        0xbfaf_e107_e8be_0502,
        0x3fae_fa44_349e_3067,
        0xbfad_95b8_195f_3808,
        0x3fa5_6880_6f42_f833,
        0xbfa3_0174_2df0_f947,
        0x3fb5_bbb4_951d_b025,
        0xbfb5_e691_f4e7_5ea3,
    ],
};

/// `(log2(1 + r) - r log2 e) / r^2` for 1 + r from the root of 1/2 to that of 2; f32 only.
pub(super) const LOG_2: Table = Table {
    single: &[
        0xbf38_aa38,
        0x3ef6_3849,
        0xbeb8_ad7e,
        0x3e93_bff0,
        0xbe75_5216,
        0x3e51_57cb,
        0xbe43_e2af,
        0x3e3f_e804,
        0xbde3_3d1a,
    ],
    double: &[],
};

/// `(log10(1 + r) - r log10 e) / r^2` for 1 + r from the root of 1/2 to that of 2; f32 only.
pub(super) const LOG_10: Table = Table {
    single: &[
        0xbe5e_5bd5,
        0x3e14_3d38,
        0xbdde_5fa2,
        0x3db1_e839,
        0xbd93_b688,
        0x3d7c_27c7,
        0xbd6b_aad4,
        0x3d66_602b,
        0xbd08_6928,
    ],
    double: &[],
};

/// `(log2((1 + f) / (1 - f)) - 2 f / log 2 - 2/3 f^3 / log 2) / f^5` in `f^2`, for `|f|` up to 0.1716.
pub(super) const POW: Table = Table {
    single: &[0x3f13_bb63, 0x3ed3_0ad8, 0x3ea4_4b4b, 0x3e87_e0c5],
    double: &[
        0x3fe2_776c_50ef_9bfe,
        0x3fda_6176_2a7a_e4dd,
        0x3fd4_84b1_3d70_dd2a,
        0x3fd0_c9a8_52d9_f4aa,
        0x3fcc_68ed_3af9_c179,
        0x3fc8_a146_7695_5e37,
        0x3fc5_6f4d_bb91_55f5,
        0x3fc9_0509_f541_2d1d,
        0xbfc9_bcef_23bf_392a,
    ],
};

/// `(sin(r) - r) / r^3` in `r^2`, for `|r|` up to pi/4.
pub(super) const SIN: Table = Table {
    single: &[0xbe2a_aaa3, 0x3c08_83be, 0xb94c_aac5],
    double: &[
        0xbfc5_5555_5555_5555,
        0x3f81_1111_1111_1089,
        0xbf2a_01a0_1a00_65fa,
        0x3ec7_1de3_a3f7_0cfd,
        0xbe5a_e643_c673_c49e,
        0x3de6_1141_cb69_06f0,
        0xbd6a_51b2_bb13_8e9d,
    ],
};

/// `(cos(r) - 1 + r^2 / 2) / r^4` in `r^2`, for `|r|` up to pi/4.
pub(super) const COS: Table = Table {
    single: &[0x3d2a_aaa5, 0xbab6_0616, 0x37cc_f4ea],
    double: &[
        0x3fa5_5555_5555_5555,
        0xbf56_c16c_16c1_6b44,
        0x3efa_01a0_1a00_0f03,
        0xbe92_7e4f_b5f8_67f7,
        0x3e21_eed7_61dd_392d,
        0xbda9_37c2_4df1_9633,
        0x3d2a_1450_852b_1eb8,
    ],
};

/// `(tan(r) - r) / r^3` in `r^2`, for `|r|` up to pi/4; f32 only.
pub(super) const TAN: Table = Table {
    single: &[
        0x3eaa_aa6f,
        0x3e08_96f1,
        0x3d5a_c372,
        0x3cc8_3127,
        0x3b4b_bbfd,
        0x3c19_dff6,
    ],
    double: &[],
};

/// `(asin(r) - r) / r^3` in `r^2`, for `|r|` up to 1/2.
pub(super) const ASIN: Table = Table {
    single: &[
        0x3e2a_aae6,
        0x3d99_8066,
        0x3d3a_4cf5,
        0x3cc5_8a7f,
        0x3d2d_2cc5,
    ],
    double: &[
        0x3fc5_5555_5555_5579,
        0x3fb3_3333_3332_dcf9,
        0x3fa6_db6d_b724_4ff8,
        0x3f9f_1c71_a81c_84c2,
        0x3f96_e8be_102e_8d74,
        0x3f91_c49c_9851_1fde,
        0x3f8c_a233_c676_81a2,
        0x3f87_5670_744e_5d3b,
        0x3f86_1e99_eb15_8866,
        0x3f6d_b9f7_5626_d2e9,
        0x3f96_6caa_cd6c_6253,
        0xbf95_c8b2_2748_f920,
        0x3fa0_cb76_8a98_6031,
    ],
};

/// `(atan(r) - r) / r^3` in `r^2`, for `|r|` up to 1.
pub(super) const ATAN: Table = Table {
    single: &[
        0xbeaa_aaa0,
        0x3e4c_c936,
        0xbe12_134d,
        0x3de0_678c,
        0xbdac_69a8,
        0x3d6e_78d9,
        0xbd00_ca16,
        0x3c35_2bd7,
        0xbaef_4f77,
    ],
    double: &[
        0xbfd5_5555_5555_554e,
        0x3fc9_9999_9999_8dbd,
        0xbfc2_4924_9245_c941,
        0x3fbc_71c7_1b79_819c,
        0xbfb7_45d1_5eb4_ff5f,
        0x3fb3_b139_d245_e6ed,
        0xbfb1_1103_e47d_c3f2,
        0x3fae_1d52_20ed_f0fe,
        0xbfaa_edd4_cdce_dfd3,
        0x3fa8_4bf9_8221_aabc,
        0xbfa5_f456_a8d8_aee6,
        0x3fa3_9517_174a_4d08,
        0xbfa0_d20e_c891_236f,
        0x3f9a_e0d6_64ba_058a,
        0xbf93_2c20_c332_0ae4,
        0x3f87_5f62_b700_017e,
        0xbf77_3e86_77e8_928e,
        0x3f61_df6a_79f9_6d6e,
        0xbf43_c1b1_059e_67fc,
        0x3f1b_c4c8_4a5a_81c7,
        0xbee2_8f5d_14cd_e209,
    ],
};

/// `(sinh(r) - r) / r^3` in `r^2`, for `|r|` up to 1.
pub(super) const SINH: Table = Table {
    single: &[0x3e2a_aaab, 0x3c08_8876, 0x3950_0d68, 0x363b_5643],
    double: &[
        0x3fc5_5555_5555_5556,
        0x3f81_1111_1111_1040,
        0x3f2a_01a0_1a03_18c4,
        0x3ec7_1de3_a405_84de,
        0x3e5a_e646_b4b3_ab0a,
        0x3de6_118e_074b_9185,
        0x3d6b_52e6_4d79_150a,
    ],
};

/// `(tanh(r) - r) / r^3` in `r^2`, for `|r|` up to 0.6 (f64: 1).
pub(super) const TANH: Table = Table {
    single: &[
        0xbeaa_aa9f,
        0x3e08_84e3,
        0xbd5c_4e2c,
        0x3caa_6868,
        0xbbc1_6529,
    ],
    double: &[
        0xbfd5_5555_5555_554f,
        0x3fc1_1111_1111_0b48,
        0xbfab_a1ba_1b9d_fa0f,
        0x3f96_64f4_878d_1bb9,
        0xbf82_26e3_461c_050e,
        0x3f6d_6d3a_fe70_52d7,
        0xbf57_da1e_54c4_c79e,
        0x3f43_54b9_99e5_7a4f,
        0xbf2f_4e1d_67e7_b9b6,
        0x3f19_3a7b_c76d_7b10,
        0xbf03_f6db_0f4a_f672,
        0x3eed_fa5e_a60a_fdbe,
        0xbed3_fff2_ec75_5a64,
        0x3eb5_6913_3e9a_0f1a,
        0xbe8f_751c_49ff_8bca,
        0x3e57_1029_674a_b7e6,
    ],
};

/// `(erf(r) - r) / r` in `r^2`, for `|r|` up to 1.00295 (f64: 1).
pub(super) const ERF_SMALL: Table = Table {
    single: &[
        0x3e03_75d4,
        0xbec0_939f,
        0x3de7_1677,
        0xbcdb_fc09,
        0x3ba9_fe3c,
        0xba51_d63d,
        0x38a4_47b1,
    ],
    double: &[
        0x3fc0_6eba_8214_db69,
        0xbfd8_1274_6b03_7a06,
        0x3fbc_e2f2_1a04_402e,
        0xbf9b_82ce_312e_b517,
        0x3f75_65bc_d1f5_f232,
        0xbf4c_02db_7a9f_7fdf,
        0x3f1f_9a3a_e4c1_c51e,
        0xbeef_4dfe_65a7_5514,
        0x3ebb_adc3_806f_cb40,
        0xbe86_bd6c_6cf3_67fb,
        0x3e56_fabc_e3a9_5770,
        0xbe3b_ad08_5f6c_ee43,
        0x3e28_1c17_2f2a_35f4,
        0xbe0c_e990_27e4_aed0,
        0x3ddf_c1f1_ba4b_2990,
    ],
};

/// `(1 + 2 a) e^(a^2) erfc(a)` in `(a - 4) / (a + 4)`, for a from 0 to 10.1 (f64: 27.5).
pub(super) const ERFC: Table = Table {
    single: &[
        0x3f9d_d2c9,
        0xbe0e_f8d7,
        0x3c7b_f300,
        0x3d8b_7619,
        0xbdce_de35,
        0x3dc0_05f8,
        0xbd88_30fe,
        0x3d17_202f,
        0xbc82_74f9,
        0x3bbe_b6b0,
        0xb9d7_7595,
        0xb9de_dcc1,
    ],
    double: &[
        0x3ff3_ba59_16e9_fd7f,
        0xbfc1_df1a_d154_a290,
        0x3f8f_7f5d_f66f_c964,
        0x3fb1_6ece_fcfa_54df,
        0xbfb9_ddb2_3c3e_47a8,
        0x3fb7_fee0_04e1_0270,
        0xbfb0_fb06_dfe9_ff99,
        0x3fa3_079e_df6a_fa7b,
        0xbf90_9623_876b_5e2c,
        0x3f74_9c67_282d_95fc,
        0xbf48_d4aa_5981_3641,
        0xbf2a_1df2_b981_3938,
        0x3f23_be10_12a0_04ad,
        0xbef9_9575_b48b_78c3,
        0xbee7_8a62_5172_8a29,
        0x3ed7_f080_8578_108c,
        0x3e94_0e6b_59d2_584d,
        0xbeab_89a9_00fd_2c21,
        0x3e72_ab4d_8795_7ff7,
        0x3e7b_d4d2_7dd8_6de2,
        0xbe50_bacf_3e1c_b25d,
        0xbe44_10a8_9176_b399,
        0x3e22_12ca_5b8b_1a9f,
        0xbdf1_4579_08b5_3952,
        0xbe01_26bb_948d_ccf9,
    ],
};

/// `(-log2(1 - erf(x)) - x) / x` for x from 1.00295 to 4; f32 only.
pub(super) const ERF_LARGE: Table = Table {
    single: &[
        0x3f20_dc50,
        0x3f6a_8366,
        0x3e1d_6147,
        0xbd0d_e1b0,
        0x3bb1_a11a,
        0xba04_9610,
        0x37a8_f4d6,
    ],
    double: &[],
};

/// `erfinv(x) / x - 1` at x^2, for |x| below 3/4.
pub(super) const ERFINV_SMALL: Table = Table {
    single: &[
        0xbde9_01db,
        0x3e6d_94e8,
        0x3e02_a41f,
        0x3daf_fa68,
        0x3d96_ad3f,
        0xbc87_3e84,
        0x3ebf_4122,
        0xbf76_e3ce,
        0x3ff2_024b,
        0xbff7_e1d9,
        0x3f76_23f8,
    ],
    double: &[
        0xbfbd_203b_7258_84ab,
        0x3fcd_b29f_b2fe_e5fd,
        0x3fc0_53c2_c0ab_70a6,
        0x3fb6_2847_c4a0_c7d9,
        0x3fb0_a131_8004_6151,
        0x3faa_7c89_20ed_56ea,
        0x3fa5_ee4f_9b3a_65f7,
        0x3fa2_b3a6_c24e_f970,
        0x3f9f_7d82_0ee6_41c8,
        0x3fa3_ed43_e131_525a,
        0xbfb2_f7cf_9189_5123,
        0x3fe7_5e33_a954_31c3,
        0xc010_039d_cb05_eeb3,
        0x4032_5fd8_2683_3487,
        0xc050_d829_46aa_c891,
        0x4068_e754_31a4_4a15,
        0xc07d_85ee_33da_1892,
        0x408b_dc63_fb9f_c9ae,
        0xc094_a480_7790_9c2f,
        0x4097_80a5_39e0_52ae,
        0xc093_dae0_a61e_87bd,
        0x4087_798a_b8b4_54a9,
        0xc071_5d91_8442_6a7d,
        0x4048_4b38_d480_efc0,
    ],
};

/// `erfinv(x) - w` at `w - 3`, with `w^2 = -log(1 - x)`, for x from 3/4 on.
pub(super) const ERFINV_LARGE: Table = Table {
    single: &[
        0xbe92_0ad9,
        0x3d2b_04cc,
        0xbbb2_5360,
        0x3891_6c49,
        0x39bc_bf88,
        0xb954_60f8,
        0x38af_2072,
        0xb7ff_997b,
        0x3730_d2cb,
        0xb650_77f6,
        0x353a_b94e,
        0xb4b4_2922,
        0x3420_118b,
    ],
    double: &[
        0xbfd2_415b_1659_3ea3,
        0x3fa5_6099_7da9_f5dc,
        0xbf76_4a6a_2a30_536b,
        0x3f12_2f0e_c275_e9c4,
        0x3f37_96b0_58fd_8600,
        0xbf2a_8e78_c442_0741,
        0x3f15_f519_c76c_5c7c,
        0xbeff_d823_18c7_3d30,
        0x3ee5_50aa_876a_5e97,
        0xbeca_dea6_5de2_b50c,
        0x3eb0_118d_c2bd_de6d,
        0xbe92_3dbe_4ffd_8491,
        0x3e73_8895_b9a6_6812,
        0xbe53_6bb5_b9f7_a3d7,
        0x3e31_486d_f5d7_e89f,
        0xbe08_f5b0_0303_e8a0,
        0x3dd1_b1b0_bbfe_32b2,
        0x3dbf_47f6_8527_9e81,
        0xbdb9_b925_e03e_3ac2,
        0x3da7_af78_98b2_380f,
        0xbd8f_fd2f_9bf8_9143,
        0x3d74_60c4_6e23_c03a,
        0xbd62_2346_572b_e0dc,
        0x3d4e_c5d9_c64f_7f3c,
        0xbd27_dc6e_386d_563e,
        0xbcfe_2b4d_b22b_9cd8,
        0x3ce8_54db_997a_ae39,
        0x3cde_d372_404f_b201,
        0xbcd2_2110_1a68_b978,
        0x3c96_d3de_95ec_eeb7,
        0x3c98_0550_b0af_0649,
        0xbc83_b59b_207a_df6a,
        0x3c5c_a3d0_89f6_4431,
        0xbc25_5916_284e_78e4,
        0x3bda_a28d_5de2_4b8c,
    ],
};

/// `log gamma(1 + r) / r` for r within 1/2.
pub(super) const LGAMMA_1: Table = Table {
    single: &[
        0xbf13_c468,
        0x3f52_8d33,
        0xbecd_269c,
        0x3e8a_8983,
        0xbe54_646e,
        0x3e2d_a785,
        0xbe12_d0c2,
        0x3dff_bd3a,
        0xbdf3_305c,
        0x3ddb_5047,
        0xbd4f_11ba,
        0x3d39_7567,
        0xbe35_f280,
        0x3e2a_48a8,
    ],
    double: &[
        0xbfe2_788c_fc6f_b619,
        0x3fea_51a6_6253_07d2,
        0xbfd9_a4d5_5bea_b2d5,
        0x3fd1_5132_2ac7_dbbe,
        0xbfca_8b9c_17aa_6802,
        0x3fc5_b40c_b0fc_4855,
        0xbfc2_703a_1dca_49d9,
        0x3fc0_10b3_6c52_3ee9,
        0xbfbc_8067_0975_6039,
        0x3fb9_a01d_c292_eead,
        0xbfb7_48c2_beab_2e19,
        0x3fb5_56b9_f1bd_3bb4,
        0xbfb3_b1e5_a452_e83e,
        0x3fb2_4889_fbac_f506,
        0xbfb1_1055_d77f_9801,
        0x3fb0_0b36_c1e2_71b0,
        0xbfae_33d6_73e6_7c0f,
        0x3fab_ad97_8c58_9529,
        0xbfaa_33fa_4f50_c02e,
        0x3fae_5b19_8f97_7938,
        0xbfac_ffe0_bc18_662e,
        0x3f75_b48e_83ba_44ed,
        0xbf72_5f23_8329_208d,
        0x3fc4_48ab_2237_ef85,
        0xbfc3_a2cb_924b_e3d0,
        0xbfc6_2854_cae5_5f9c,
        0x3fc5_8c19_1555_bd4a,
        0x3fcd_b8d1_4b98_4b43,
        0xbfcc_d15f_e0d2_180b,
    ],
};

/// `log gamma(2 + r) / r` for r within 1/2.
pub(super) const LGAMMA_2: Table = Table {
    single: &[
        0x3ed8_7730,
        0x3ea5_1a66,
        0xbd89_effe,
        0x3ca8_9911,
        0xbbf2_07b8,
        0x3b3d_737f,
        0xba9b_6edc,
        0x3a04_c7ca,
        0xb985_12c1,
        0x38ed_f842,
    ],
    double: &[
        0x3fdb_0ee6_0720_93ce,
        0x3fd4_a34c_c4a6_0fa7,
        0xbfb1_3e00_1a55_7607,
        0x3f95_1322_ac7d_7fd2,
        0xbf7e_404f_c218_ecff,
        0x3f67_add6_eae5_b8fd,
        0xbf53_8ac5_c2c9_6006,
        0x3f40_b36a_f342_4c50,
        0xbf2d_3fd4_bda4_f97b,
        0x3f1a_127d_d231_f4b2,
        0xbf07_8de8_5fa0_bf74,
        0x3ef5_806d_7786_fbc2,
        0xbee3_cb5f_2017_54a6,
        0x3ed2_640a_5e8a_b73e,
        0xbec1_2540_8d7e_e6eb,
        0x3eae_df31_7afe_0c72,
        0xbe9d_06b4_6182_e294,
        0x3e92_b4bb_069e_e6a9,
        0xbe81_be56_b7e1_01c6,
    ],
};

/// What Stirling's formula lacks, times x, at `1 / x^2`, for x from 8 on.
pub(super) const LGAMMA_FAR: Table = Table {
    single: &[0x3daa_aaab, 0xbb36_0b5d, 0x3a4f_fc4c, 0xba15_5c6e],
    double: &[
        0x3fb5_5555_5555_5555,
        0xbf66_c16c_16c1_6b0f,
        0x3f4a_01a0_19ec_3f98,
        0xbf43_8137_e90d_f4a8,
        0x3f4b_94f4_8710_7cd1,
        0xbf5f_5f7d_fd10_9d9e,
        0x3f79_6800_1013_1cd5,
        0xbf95_3f6d_710a_d3b6,
    ],
};
