package execcredential

import (
	"fmt"
	"slices"
	"strings"
)

// loaderVariables make another program of one, whatever its file is: its loader or interpreter, or a program that shows a login, runs
// what they name. Which of them a program obeys is not known, so a policy that names programs lets a config set none.
var (
	loaderPrefixes  = []string{"LD_", "DYLD_", "_RLD", "PYTHON", "PERL5", "RUBY", "LUA_", "CORECLR_", "COR_", "DOTNET_"}
	loaderVariables = []string{
		"PATH", "PATHEXT", "COMSPEC", "GCONV_PATH", "GLIBC_TUNABLES", "OPENSSL_CONF", "BASH_ENV", "ENV", "ZDOTDIR", "SHELLOPTS", "PS4", "IFS",
		"NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "PERLLIB", "BROWSER", "SYSTEMROOT", "WINDIR",
	}
)

// checkLoader returns why a program would not be the one that its file is, or nothing.
func checkLoader(env []EnvVar) string {
	for i, variable := range env {
		name := strings.ToUpper(variable.Name)
		if slices.Contains(loaderVariables, name) || strings.HasPrefix(name, "BASH_FUNC_") ||
			slices.ContainsFunc(loaderPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return fmt.Sprintf("env[%d] is %q, by which something else would run", i, clip(variable.Name))
		}
	}
	return ""
}

// onlyThese returns the first variable that allowed has not, or nothing. Nil allows all.
func onlyThese(allowed []string, env []EnvVar) string {
	if allowed != nil {
		for _, variable := range env {
			if !slices.Contains(allowed, variable.Name) {
				return variable.Name
			}
		}
	}
	return ""
}
