package kubeapi

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

// The client decides whether the user may be prompted, also by programs that run for it.
func TestProgramOfTheUser(t *testing.T) {
	for _, interactive := range []bool{true, false} {
		program := &api.ExecConfig{Command: "login", Env: []api.ExecEnvVar{{Name: "A", Value: "b"}}}
		got := guarded(program, interactive)
		if got.StdinUnavailable == interactive {
			t.Errorf("the user may be prompted: %t, and standard input is kept from the program: %t", interactive, got.StdinUnavailable)
		}
		if last := got.Env[len(got.Env)-1]; last.Name != kubeconfig.Guard || last.Value == "" || len(program.Env) != 1 {
			t.Errorf("got %+v from %+v", got.Env, program.Env)
		}
	}
}
