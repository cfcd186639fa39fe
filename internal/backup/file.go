package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"

	"github.com/credence-id/credence/internal/jsonfields"
)

// version is that of the file format.
const version = 1

// MaxSize is the longest file that is read, in bytes: far more than a million identities have.
const MaxSize = 4 << 30

// Errors of a file.
var (
	// ErrEncrypted: no key was given.
	ErrEncrypted = errors.New("the backup is encrypted with age")
	// ErrRecipient: no key that was given is of a recipient of the file.
	ErrRecipient = errors.New("the backup is encrypted to another recipient")
	// ErrDamaged: the file is not as it was written, or is not a backup.
	ErrDamaged = errors.New("the file is damaged, or is not a backup")
)

// envelope is a file that is not encrypted, or what is encrypted in one.
type envelope struct {
	Version int             `json:"credenceBackup"`
	SHA256  string          `json:"sha256"` // of the content without white space
	Content json.RawMessage `json:"content"`
}

// Encode returns the file of a backup, encrypted if there are recipients. One with a ring needs them.
func (b *Backup) Encode(recipients []age.Recipient) ([]byte, error) {
	if b.Ring != nil && len(recipients) == 0 {
		return nil, errors.New("a backup with the ring of keys must be encrypted to a recipient")
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	content, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode backup: %w", err)
	}
	file, err := json.Marshal(envelope{Version: version, SHA256: digest(content), Content: content})
	if err != nil || len(recipients) == 0 {
		return append(file, '\n'), err
	}
	var sealed bytes.Buffer
	writer, err := age.Encrypt(&sealed, recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypt backup: %w", err)
	}
	if _, err := writer.Write(file); err != nil {
		return nil, fmt.Errorf("encrypt backup: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("encrypt backup: %w", err)
	}
	return sealed.Bytes(), nil
}

// Decode returns the backup of a file, which is decrypted with one of the keys if it is encrypted.
func Decode(file []byte, decryption []age.Identity) (*Backup, error) {
	if bytes.HasPrefix(file, []byte("age-encryption.org/")) {
		var err error
		if file, err = decrypt(file, decryption); err != nil {
			return nil, err
		}
	}
	var found envelope
	if err := json.Unmarshal(file, &found); err != nil || found.Version == 0 {
		return nil, ErrDamaged
	}
	if found.Version != version {
		return nil, fmt.Errorf("the backup has version %d, and this program reads version %d: use the version of Credence that made it, or a later one", found.Version, version)
	}
	var content bytes.Buffer
	if err := json.Compact(&content, found.Content); err != nil || digest(content.Bytes()) != found.SHA256 {
		return nil, fmt.Errorf("%w: its content does not have the checksum that it was written with", ErrDamaged)
	}
	b := &Backup{}
	unknown, err := jsonfields.Unknown(content.Bytes(), b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("the backup has fields that this program does not know (%q): use the version of Credence that made it, %s, or a later one",
			strings.Join(unknown, ", "), b.Program)
	}
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return b, nil
}

func decrypt(file []byte, decryption []age.Identity) ([]byte, error) {
	if len(decryption) == 0 {
		return nil, ErrEncrypted
	}
	reader, err := age.Decrypt(bytes.NewReader(file), decryption...)
	if _, other := errors.AsType[*age.NoIdentityMatchError](err); other {
		return nil, ErrRecipient
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return plain, nil
}

func digest(content []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(content))
}
