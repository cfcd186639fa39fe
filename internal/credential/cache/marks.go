package cache

import (
	"bufio"
	"io"
	"os"
	"strings"
)

// maxMarks bounds the marks of a name, in bytes. Past it the older half is forgotten.
const maxMarks = 64 << 10

// Marked counts how often a mark was made since the last removal. It takes no lock.
func (f *Folder) Marked(name Name, mark string) int {
	file, err := f.open(name.marks())
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	times := 0
	lines := bufio.NewScanner(io.LimitReader(file, 2*maxMarks))
	for lines.Scan() {
		if lines.Text() == mark {
			times++
		}
	}
	return times
}

// Mark makes a mark: one line of text. It takes no lock, so that a fresh credential is served without one; of two processes that
// make marks at the same moment one may be lost, but only when the older half is forgotten. A mark that could not be made is
// as one that was not.
func (f *Folder) Mark(name Name, mark string) {
	if strings.ContainsRune(mark, '\n') {
		return
	}
	base := name.marks()
	if info, err := f.root.Lstat(base); err == nil {
		if !info.Mode().IsRegular() {
			_ = f.root.Remove(base)
		} else if info.Size() > maxMarks {
			f.halveMarks(base)
		}
	}
	file, err := f.root.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_, _ = file.WriteString(mark + "\n")
	_ = file.Close()
}

func (f *Folder) halveMarks(base string) {
	file, err := f.open(base)
	if err != nil {
		return
	}
	text, err := io.ReadAll(io.LimitReader(file, 2*maxMarks))
	_ = file.Close()
	if err != nil {
		return
	}
	_, newer, _ := strings.Cut(string(text[len(text)/2:]), "\n")
	if file, err = f.root.OpenFile(base, os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
		return
	}
	_, _ = file.WriteString(newer)
	_ = file.Close()
}
