package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// audit counts the requests of one user to kube-apiserver, by its audit log, which has an event of each. Watches do not count:
// they end and begin anew by the clock, whatever the load.
type audit struct {
	path, user string
	file       *os.File
	rest       []byte // the beginning of a line whose end is not written yet
}

// calls are how many requests there were: access reviews, and all others.
type calls struct{ reviews, others int }

// followAudit begins at the end of the log of a plane.
func followAudit(p plane, user string) (*audit, error) {
	a := &audit{path: filepath.Join(p.dir, "devcluster", "audit.log"), user: user}
	var err error
	if a.file, err = os.Open(a.path); err != nil {
		return nil, fmt.Errorf("count requests: %w", err)
	}
	if _, err := a.file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	return a, nil
}

func (a *audit) close() { _ = a.file.Close() }

// since counts the requests since it was called last. Where the log was renamed in between, as it is when it has grown large,
// it reads the old one to its end and goes on with the new one.
func (a *audit) since() (calls, error) {
	var c calls
	for {
		text, err := io.ReadAll(a.file)
		if err != nil {
			return calls{}, err
		}
		if a.rest, err = c.count(append(a.rest, text...), a.user); err != nil {
			return calls{}, fmt.Errorf("%s: %w", a.path, err)
		}
		same, err := a.current()
		if same || err != nil {
			return c, err
		}
	}
}

// current reports whether the file that is read is still the one that is written, and else opens that one.
func (a *audit) current() (bool, error) {
	mine, err := a.file.Stat()
	if err != nil {
		return false, err
	}
	written, err := os.Stat(a.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && os.SameFile(mine, written) {
		return true, nil // the new one comes with its first event
	}
	if err != nil {
		return false, err
	}
	a.close()
	a.file, err = os.Open(a.path)
	return false, err
}

// count adds the events of a user, and returns what follows the last line that is whole.
func (c *calls) count(text []byte, user string) (rest []byte, err error) {
	quoted := []byte(`"username":"` + user + `"`)
	for {
		line, after, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return bytes.Clone(text), nil
		}
		text = after
		if !bytes.Contains(line, quoted) {
			continue
		}
		var event struct {
			Stage, Verb string
			User        struct{ Username string }
			ObjectRef   struct{ Resource string }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("decode audit event: %w", err)
		}
		switch {
		case event.User.Username != user || event.Stage != "ResponseComplete" || event.Verb == "watch":
		case event.ObjectRef.Resource == "subjectaccessreviews":
			c.reviews++
		default:
			c.others++
		}
	}
}
