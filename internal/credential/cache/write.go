package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// reservation is how many bytes Reserve makes sure of.
const reservation = 64 << 10

// Reserve makes sure that the next Write of up to 64 KiB has space on the disk: it creates the file that Write needs, with as many
// bytes. Call it before using up a state whose successor has to be written.
func (l *Lock) Reserve() error {
	l.dropReserved()
	file, err := l.temporary()
	if err != nil {
		return fmt.Errorf("reserve space in %s: %w", l.folder.path, err)
	}
	// Not zeros: a file system could store them without using space.
	filler := make([]byte, reservation)
	for i := range filler {
		filler[i] = byte(i*i) | 1
	}
	if _, err = file.Write(filler); err == nil {
		err = file.Sync()
	}
	if err != nil {
		l.discard(file)
		return fmt.Errorf("reserve space in %s: %w", l.folder.path, err)
	}
	l.reserved = file
	return nil
}

// Write replaces what is kept of the name in one step: after a crash at any point it is the old content or the new one.
func (l *Lock) Write(data []byte) error {
	file := l.reserved
	l.reserved = nil
	var err error
	if file == nil {
		file, err = l.temporary()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", l.folder.file(string(l.name)), err)
	}
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Truncate(int64(len(data)))
	}
	if err == nil {
		err = file.Sync()
	}
	// Windows renames no open file.
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = l.folder.root.Rename(l.name.temporary(), string(l.name))
	}
	if err != nil {
		_ = l.folder.root.Remove(l.name.temporary())
		return fmt.Errorf("write %s: %w", l.folder.file(string(l.name)), err)
	}
	if err := l.folder.sync(); err != nil {
		return fmt.Errorf("write %s: %w", l.folder.file(string(l.name)), err)
	}
	return nil
}

// Unmark removes all marks of the name.
func (l *Lock) Unmark() { _ = l.folder.root.Remove(l.name.marks()) }

// Remove removes what is kept of the name, its marks, and the file of the lock, which ends with it.
func (l *Lock) Remove() error {
	err := l.Forget()
	// A process that waits for the lock finds that its file was removed, and makes a new one.
	if removed := l.folder.root.Remove(l.name.lock()); err == nil && !errors.Is(removed, fs.ErrNotExist) && lockCanBeRemoved {
		err = removed
	}
	l.Release()
	return err
}

// Forget removes what is kept of the name. The lock goes on.
func (l *Lock) Forget() error {
	l.dropReserved()
	var failed error
	for _, base := range []string{string(l.name), l.name.marks(), l.name.temporary()} {
		if err := l.folder.root.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("remove %s: %w", l.folder.file(base), err))
		}
	}
	if err := l.folder.sync(); err != nil {
		failed = errors.Join(failed, err)
	}
	return failed
}

// temporary makes the file that becomes the content. One name is enough, since only the holder of the lock uses it: an existing
// file was left by a killed process.
func (l *Lock) temporary() (*os.File, error) {
	if err := l.folder.root.Remove(l.name.temporary()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return l.folder.root.OpenFile(l.name.temporary(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

func (l *Lock) dropReserved() {
	if l.reserved != nil {
		l.discard(l.reserved)
		l.reserved = nil
	}
}

func (l *Lock) discard(file *os.File) {
	_ = file.Close()
	_ = l.folder.root.Remove(l.name.temporary())
}
