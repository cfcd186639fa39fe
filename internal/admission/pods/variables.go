package pods

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/target"
)

// variables are those of a grant that the container lacks, and a warning for each that it sets itself to something else.
func variables(c container, g grant, os target.OS) ([]corev1.EnvVar, []string) {
	var missing []corev1.EnvVar
	var warnings []string
	for _, v := range g.injection.Env {
		ours := corev1.EnvVar{Name: v.Name, Value: literal(v.Value)}
		own, present := last(c.env, v.Name, os)
		if !present && v.Alias != "" {
			_, present = last(c.env, v.Alias, os)
		}
		switch {
		case !present:
			missing = append(missing, ours)
		case !v.Default && (own.ValueFrom != nil || own.Value != ours.Value):
			warnings = append(warnings, fmt.Sprintf("container %q sets %s itself, which is kept: the one of workload identity %q is not added", c.name, v.Name, g.identity))
		}
	}
	return missing, warnings
}

// last finds a variable that is set: of several with a name, the last counts.
func last(env []corev1.EnvVar, name string, os target.OS) (corev1.EnvVar, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if same(env[i].Name, name, os) {
			return env[i], true
		}
	}
	return corev1.EnvVar{}, false
}

// same compares names of variables as the operating system does.
func same(a, b string, os target.OS) bool {
	return a == b || os == target.Windows && strings.EqualFold(a, b)
}

// literal keeps the kubelet from replacing $(NAME) in a value.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }

// sharedVariables refuses two identities that want the same variable: an SDK can present one of them only.
func sharedVariables(grants []grant, os target.OS) *Denial {
	for i, g := range grants {
		for _, v := range g.injection.Env {
			for _, other := range grants[:i] {
				if _, both := last(asEnv(other.injection.Env), v.Name, os); both {
					return decision.Invalid(fmt.Sprintf("workload identities %q and %q of the pod's service account both need the variable %s, and a container can have it once: give them to pods of two service accounts",
						other.identity, g.identity, v.Name))
				}
			}
		}
	}
	return nil
}

func asEnv(variables []target.Variable) []corev1.EnvVar {
	env := make([]corev1.EnvVar, len(variables))
	for i, v := range variables {
		env[i].Name = v.Name
	}
	return env
}
