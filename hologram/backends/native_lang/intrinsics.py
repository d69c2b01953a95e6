"""What differs between machines in native code: a few functions in LLVM IR, with the same names for each architecture."""

from __future__ import annotations

PRELUDE = {
    "x86_64": """
declare void @llvm.x86.sse2.pause()
declare i64 @llvm.readcyclecounter()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal void @hg_pause() alwaysinline nounwind {
  call void @llvm.x86.sse2.pause()
  ret void
}
define internal i64 @hg_ticks() alwaysinline nounwind {
  %t = call i64 @llvm.readcyclecounter()
  ret i64 %t
}
define internal i64 @hg_read_fp_control() alwaysinline nounwind {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %v = load i32, ptr %p
  %c = and i32 %v, -64
  %w = zext i32 %c to i64
  ret i64 %w
}
define internal void @hg_write_fp_control(i64 %bits) alwaysinline nounwind {
  %p = alloca i32
  %v = trunc i64 %bits to i32
  store i32 %v, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
""",
    "aarch64": """
declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.read_volatile_register.i64(metadata)
!0 = !{!"CNTVCT_EL0"}
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define internal void @hg_pause() alwaysinline nounwind {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
define internal i64 @hg_ticks() alwaysinline nounwind {
  %t = call i64 @llvm.read_volatile_register.i64(metadata !0) ; llvm.readsteadycounter is the constant 0 here
  ret i64 %t
}
define internal i64 @hg_read_fp_control() alwaysinline nounwind {
  %v = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %v
}
define internal void @hg_write_fp_control(i64 %bits) alwaysinline nounwind {
  call void @llvm.aarch64.set.fpcr(i64 %bits)
  ret void
}
""",
}
# IEEE 754 default control bits: all exceptions masked, round to nearest, subnormals kept
FP_CONTROL = {"x86_64": 0x1F80, "aarch64": 0}
ARCHITECTURES = tuple(PRELUDE)
