package sdk

import (
	_ "embed"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

//go:embed container.py
var containerOfPython string

// python is an interpreter that has boto3 or the AWS CLI.
type python struct {
	interpreter, module, version string
	// readsEndpoints reports whether it reads AWS_ENDPOINT_URL_STS and the like, as botocore does since 1.31.
	readsEndpoints bool
}

// pythons are those of this machine: of the interpreter that is first in PATH, and of the system's.
var pythons = sync.OnceValue(func() []python {
	var found []python
	for _, command := range []string{"python3", "/usr/bin/python3"} {
		for _, module := range []string{"boto3", "awscli"} {
			output, err := exec.Command(command, "-c", "import sys, "+module+"\n"+
				"try: from botocore.configprovider import ConfiguredEndpointProvider as reads\nexcept ImportError: reads = None\n"+
				"print(sys.executable, "+module+".__version__, bool(reads))").Output()
			if err != nil {
				continue
			}
			words := strings.Fields(string(output))
			if p := (python{words[0], module, words[1], words[2] == "True"}); !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return found
})

// pythonClouds are AWS as its programs in Python see it.
func pythonClouds() []cloud {
	var clouds []cloud
	for _, python := range pythons() {
		c := awsCloud()
		c.sdk = python.module + " " + python.version
		c.command = []string{python.interpreter, "-c", containerOfPython, python.module}
		c.providerConfig = strings.Replace(c.providerConfig, awsRole, awsRoleOfPython, 1)
		c.principal = "arn:aws:sts::112233445566:assumed-role/shop/cart-python/"
		c.refusals = refusals{
			audience: "(InvalidIdentityToken) …: Incorrect token audience", subject: "(AccessDenied) …: Not authorized", expired: "(ExpiredTokenException) …",
			unpublished: "(InvalidIdentityToken) …: Couldn't retrieve verification key",
		}
		clouds = append(clouds, c)
	}
	return clouds
}

// Without this test, missing programs would not be reported.
func TestPythonIsThere(t *testing.T) {
	requireIsolation(t)
	for _, module := range []string{"boto3", "awscli"} {
		if slices.ContainsFunc(pythons(), func(p python) bool { return p.module == module }) {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Errorf("no Python has the module %s: run hack/sdk-programs.sh", module)
			continue
		}
		t.Skipf("no Python has the module %s: run hack/sdk-programs.sh", module)
	}
	for _, p := range pythons() {
		t.Logf("%s %s of %s", p.module, p.version, p.interpreter)
	}
}
