package access

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	// Policies begins the names of the policies that require use of an account. Each puts the account of a request that it evaluates into an
	// annotation of the audit event, by the key account. Whether the user lacks the right is in the annotation of the API server for what policies refuse:
	// their first expression is the right.
	Policies = "credence-account-use-"
	auditKey = "/account"
	// revisions is the policy that requires the right to all accounts of a namespace, where it can't know the account. All others name one.
	revisions = Policies + "revisions"
	failures  = "validation.policy.admission.k8s.io/validation_failure"

	maxLine = 16 << 20
	maxBad  = 5 // lines that are named
)

// Missing is what an audit log holds of rights that were missing: of which users, for which accounts, in how many events.
type Missing struct {
	Events  int // audit events
	Refused int // of these, requests that were refused: users in namespaces that enforce the right, and whatever they tried
	Bad     int // lines that cannot be read as audit events, or have invalid names
	// Named are the first bad lines, by number and with the reason; LeftOut are users who get no suggestion.
	Named   []string
	LeftOut map[string]bool

	rights map[Account]map[rbacv1.Subject]int
}

// event is what is read of an audit event, of level Metadata or above.
type event struct {
	APIVersion string `json:"apiVersion"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef struct {
		Namespace string `json:"namespace"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// Read reads an audit log, line by line. An error is one of reading; bad lines are counted.
func (m *Missing) Read(log io.Reader) error {
	reader := bufio.NewReaderSize(log, 64<<10)
	var line []byte
	for number := 1; ; number++ {
		var err error
		line, err = readLine(reader, line[:0])
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if problem := m.add(text); problem != nil {
				if m.Bad++; len(m.Named) < maxBad {
					m.Named = append(m.Named, fmt.Sprintf("line %d: %v", number, problem))
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine appends a line. Of one that is too long it appends a part, which is too long as well.
func readLine(reader *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := reader.ReadSlice('\n')
		if len(line) < maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (m *Missing) add(line []byte) error {
	if len(line) > maxLine {
		return fmt.Errorf("longer than %d bytes", maxLine)
	}
	// Most lines are of other requests, and long.
	if !bytes.Contains(line, []byte(Policies)) {
		if !json.Valid(line) || !bytes.Contains(line, []byte(`"audit.k8s.io/`)) {
			return errors.New("not an audit event in JSON")
		}
		m.Events++
		return nil
	}
	var found event
	if err := json.Unmarshal(line, &found); err != nil {
		return errors.New("not an audit event in JSON")
	}
	if !strings.HasPrefix(found.APIVersion, "audit.k8s.io/") {
		return fmt.Errorf("apiVersion %q is not that of audit events", found.APIVersion)
	}
	m.Events++
	user := found.User.Username
	if found.ImpersonatedUser != nil {
		user = found.ImpersonatedUser.Username
	}
	accounts, err := found.accounts()
	if err != nil || len(accounts) == 0 {
		return err
	}
	subject, err := Subject(user, false)
	switch {
	case err != nil:
		return err
	case found.ResponseStatus.Code >= http.StatusBadRequest:
		m.Refused++
		return nil
	case user == "system:anonymous":
		if m.LeftOut == nil {
			m.LeftOut = map[string]bool{}
		}
		m.LeftOut[user] = true
		return nil
	}
	for _, account := range accounts {
		if m.rights == nil {
			m.rights = map[Account]map[rbacv1.Subject]int{}
		}
		if m.rights[account] == nil {
			m.rights[account] = map[rbacv1.Subject]int{}
		}
		m.rights[account][subject]++
	}
	return nil
}

// accounts are those that the user may not use by a policy, each once. The API server joins what several bindings of a policy publish. A user may
// have written part of a value, so that only accounts of the request's namespace count.
func (e event) accounts() ([]Account, error) {
	var refusals []struct {
		Policy          string      `json:"policy"`
		ExpressionIndex json.Number `json:"expressionIndex"`
	}
	if text, refused := e.Annotations[failures]; refused {
		if err := json.Unmarshal([]byte(text), &refusals); err != nil {
			return nil, fmt.Errorf("annotation %s is not a list of what policies refuse", failures)
		}
	}
	var accounts []Account
	for _, refusal := range refusals {
		key := refusal.Policy + auditKey
		values := e.Annotations[key]
		if !strings.HasPrefix(key, Policies) || refusal.ExpressionIndex != "0" || values == "" {
			continue
		}
		for value := range strings.SplitSeq(values, ", ") {
			namespace, name, _ := strings.Cut(value, "/")
			account := Account{namespace, name}
			if err := account.Check(); err != nil {
				return nil, fmt.Errorf("annotation %s: %w", key, err)
			}
			if namespace != e.ObjectRef.Namespace {
				return nil, fmt.Errorf("annotation %s: service account %s/%s is not of the namespace %q of the request", key, namespace, name, e.ObjectRef.Namespace)
			}
			if name == "*" && refusal.Policy != revisions {
				return nil, fmt.Errorf("annotation %s: policy %s names one service account, not all of namespace %s", key, refusal.Policy, namespace)
			}
			if !slices.Contains(accounts, account) {
				accounts = append(accounts, account)
			}
		}
	}
	return accounts, nil
}

// Suggestion is what gives the users of an account the right that they lacked.
type Suggestion struct {
	Account Account
	Role    *rbacv1.Role // nil for all accounts of the namespace
	Binding *rbacv1.RoleBinding
	Events  int
}

// Suggestions are sorted by how much they give, the least first: to the fewest users, and what is for all accounts of a namespace last.
// Each RoleBinding is named after its subjects, so that applying those of another log takes no right away.
func (m *Missing) Suggestions() []Suggestion {
	suggestions := make([]Suggestion, 0, len(m.rights))
	for account, users := range m.rights {
		subjects := slices.SortedFunc(maps.Keys(users), compareSubjects)
		s := Suggestion{Account: account, Role: account.Role(), Binding: account.Binding(subjects...)}
		s.Binding.Name += ":" + shortHash(subjects)
		for _, events := range users {
			s.Events += events
		}
		suggestions = append(suggestions, s)
	}
	slices.SortFunc(suggestions, func(a, b Suggestion) int {
		return cmp.Or(compareBool(a.Role == nil, b.Role == nil), cmp.Compare(len(a.Binding.Subjects), len(b.Binding.Subjects)),
			cmp.Compare(a.Account.Namespace, b.Account.Namespace), cmp.Compare(a.Account.Name, b.Account.Name))
	})
	return suggestions
}

func compareSubjects(a, b rbacv1.Subject) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func shortHash(subjects []rbacv1.Subject) string {
	hash := sha256.New()
	for _, s := range subjects {
		fmt.Fprintf(hash, "%q %q %q\n", s.Kind, s.Namespace, s.Name)
	}
	return hex.EncodeToString(hash.Sum(nil)[:5])
}
