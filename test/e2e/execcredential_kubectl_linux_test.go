package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// session is stock kubectl on a terminal of its own, as a person has it.
type session struct {
	t      *testing.T
	person *os.File
	ended  chan struct{}
	code   int

	mu    sync.Mutex
	shown strings.Builder
}

// kubectlOnATerminal runs stock kubectl with a kubeconfig, and further variables.
func kubectlOnATerminal(t *testing.T, kubeconfig string, env []string, args ...string) *session {
	t.Helper()
	person, tty := openTerminal(t)
	s := &session{t: t, person: person, ended: make(chan struct{})}
	cmd := exec.Command(program("kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Env = append(append(os.Environ(), "HOME="+t.TempDir()), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	_ = tty.Close() // so that reading ends when kubectl, and what it started, have
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := person.Read(buffer)
			s.mu.Lock()
			s.shown.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = cmd.Wait()
		<-read
		s.code = cmd.ProcessState.ExitCode()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ended
	})
	return s
}

func (s *session) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// shows waits for what a person would wait for.
func (s *session) shows(want *regexp.Regexp) []string {
	s.t.Helper()
	var found []string
	eventually(s.t, func() error {
		if found = want.FindStringSubmatch(s.screen()); found != nil {
			return nil
		}
		select {
		case <-s.ended:
			return fatal{fmt.Errorf("kubectl ended and did not show %s:\n%s", want, s.screen())}
		default:
			return fmt.Errorf("kubectl does not show %s, but\n%s", want, s.screen())
		}
	})
	return found
}

// ends waits for the end, and returns all that was shown.
func (s *session) ends(code int) string {
	s.t.Helper()
	eventually(s.t, func() error {
		select {
		case <-s.ended:
			return nil
		default:
			return errors.New("kubectl does not end")
		}
	})
	if s.code != code {
		s.t.Fatalf("exit code %d, want %d:\n%s", s.code, code, s.screen())
	}
	return s.screen()
}

// kubeconfigWith is a kubeconfig of the cluster whose user has this program.
func (w *execWorld) kubeconfigWith(program *api.ExecConfig) string {
	w.t.Helper()
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: w.cluster.Host, CertificateAuthority: w.cluster.CAFile, CertificateAuthorityData: w.cluster.CAData}
	config.AuthInfos["u"] = &api.AuthInfo{Exec: program}
	config.Contexts["c"] = &api.Context{Cluster: "c", AuthInfo: "u", Namespace: w.namespace}
	config.CurrentContext = "c"
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	must(w.t, clientcmd.WriteToFile(*config, path))
	return path
}

// prompting is a program that prompts for a password on its terminal, and hands out a token of the robot for the right one. It writes down
// its KUBERNETES_EXEC_INFO.
func (w *execWorld) prompting(mode api.ExecInteractiveMode) (kubeconfig string, infos func() []string) {
	w.t.Helper()
	folder := w.t.TempDir()
	token := need(w.token(""))(w.t)
	credential := need(json.Marshal(map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": map[string]string{"token": token},
	}))(w.t)
	script := `#!/bin/sh
printf '%s\n' "$KUBERNETES_EXEC_INFO" >> "$(dirname "$0")/infos"
[ -t 0 ] || { echo 'no person to prompt' >&2; exit 4; }
printf 'Password of %s: ' "$1" >&2
stty -echo
read -r password
stty echo
echo >&2
[ "$password" = open-sesame ] || { echo 'wrong password' >&2; exit 3; }
cat "$(dirname "$0")/credential"
`
	for name, file := range map[string]struct {
		content string
		mode    os.FileMode
	}{"login": {script, 0o700}, "credential": {string(credential), 0o600}} {
		must(w.t, os.WriteFile(filepath.Join(folder, name), []byte(file.content), file.mode))
	}
	infos = func() []string {
		content, err := os.ReadFile(filepath.Join(folder, "infos"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
		return strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' })
	}
	return w.kubeconfigWith(&api.ExecConfig{
		Command: filepath.Join(folder, "login"), Args: []string{"jane"}, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: mode,
	}), infos
}

var whoAmI = []string{"auth", "whoami", "-o", `jsonpath=I am {.status.userInfo.username}{"\n"}`}

// Input at the terminal of stock kubectl reaches the program that it runs, and the program's prompt reaches the person.
func TestExecCredentialTerminalReachesTheProgram(t *testing.T) {
	inTurn(t)
	w := newExecWorld(t, shared.config(t), filepath.Join(shared.Dir, "devcluster"))
	for _, mode := range []api.ExecInteractiveMode{api.IfAvailableExecInteractiveMode, api.AlwaysExecInteractiveMode} {
		t.Run(string(mode), func(t *testing.T) {
			w := *w
			w.t = t
			kubeconfig, infos := w.prompting(mode)
			s := kubectlOnATerminal(t, kubeconfig, nil, whoAmI...)
			s.shows(regexp.MustCompile(`Password of jane: $`))
			eventually(t, func() error { return silent(s.person) })
			need(s.person.WriteString("open-sesame\n"))(t)
			if shown := s.ends(0); !strings.Contains(shown, "I am "+w.robot()) || strings.Contains(shown, "open-sesame") {
				t.Errorf("shown:\n%s", shown)
			}
			if lines := infos(); len(lines) != 1 || !strings.Contains(lines[0], `"interactive":true`) {
				t.Errorf("got %q", lines)
			}
		})
	}
	t.Run("no terminal", func(t *testing.T) {
		w := *w
		w.t = t
		for mode, want := range map[api.ExecInteractiveMode]struct {
			message string
			info    string
		}{
			api.AlwaysExecInteractiveMode:      {message: "standard input is not a terminal"},
			api.IfAvailableExecInteractiveMode: {message: "no person to prompt", info: `"interactive":false`},
		} {
			kubeconfig, infos := w.prompting(mode)
			out, err := exec.Command(program("kubectl"), append([]string{"--kubeconfig", kubeconfig}, whoAmI...)...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), want.message) {
				t.Errorf("%s: error %v\n%s", mode, err, out)
			}
			lines := infos()
			if want.info == "" && len(lines) > 0 || want.info != "" && (len(lines) == 0 || !strings.Contains(lines[0], want.info)) {
				t.Errorf("%s: got %q", mode, lines)
			}
		}
	})
}

// silent returns an error if a terminal shows what is typed.
func silent(terminal *os.File) error {
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	if state.Lflag&unix.ECHO != 0 {
		return errors.New("the terminal shows what is typed")
	}
	return nil
}

// The provider of this project behind stock kubectl: its notices reach the person at the terminal, who does what they ask for in
// another one; then kubectl goes on.
func TestExecCredentialProviderOnATerminal(t *testing.T) {
	inTurn(t)
	w := newExecWorld(t, shared.config(t), filepath.Join(shared.Dir, "devcluster"))
	for name, command := range map[string][]string{
		"small program":      {program("credence-credential"), "client-certificate"},
		"part of the larger": {program("credence"), "credential", "client-certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			kubeconfig := w.kubeconfigWith(&api.ExecConfig{
				Command: command[0], APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.AlwaysExecInteractiveMode,
				Args: append(command[1:], "--user-name", w.person(), "--duration", "10m", "--kubeconfig", shared.Kubeconfig, "--cache-folder", filepath.Join(t.TempDir(), "cache")),
			})
			s := kubectlOnATerminal(t, kubeconfig, nil, whoAmI...)
			asked := s.shows(approveCommand)
			shared.must(t, "", "kubectl", "certificate", "approve", asked[1])
			if shown := s.ends(0); !strings.Contains(shown, "I am "+w.person()) || strings.Contains(shown, "PRIVATE KEY") {
				t.Errorf("shown:\n%s", shown)
			}
			// The kept credential serves the next one, without a prompt.
			began := time.Now()
			again := kubectlOnATerminal(t, kubeconfig, nil, whoAmI...)
			if shown := again.ends(0); !strings.Contains(shown, "I am "+w.person()) || strings.Contains(shown, "approve") {
				t.Errorf("after %s shown:\n%s", time.Since(began), shown)
			}
		})
	}
}
