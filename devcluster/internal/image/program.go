package image

import (
	"debug/elf"
	"fmt"
	"runtime"
)

// CheckProgram is an error unless the file at path is a program that runs in an empty file system on this machine.
func CheckProgram(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is not a Linux program: %w", path, err)
	}
	defer file.Close()
	if machine, known := machines[runtime.GOARCH]; known && file.Machine != machine {
		return fmt.Errorf("%s is a program for %s, this machine is %s: build it with GOARCH=%s", path, file.Machine, runtime.GOARCH, runtime.GOARCH)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs libraries of the machine, which an image of it alone does not have: link it statically (in Go with CGO_ENABLED=0)", path)
		}
	}
	return nil
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "riscv64": elf.EM_RISCV}
