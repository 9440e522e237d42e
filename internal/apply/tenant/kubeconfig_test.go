// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// kubeconfig is a kubeconfig with additions to the current context, cluster and user.
func kubeconfig(cluster, user string) string {
	return `apiVersion: v1
kind: Config
current-context: there
contexts:
- name: there
  context: {cluster: there, user: me}
- name: other
  context: {cluster: other, user: other}
clusters:
- name: other
  cluster: {server: "http://127.0.0.1", insecure-skip-tls-verify: true}
- name: there
  cluster: {` + cluster + `}
users:
- name: other
  user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}
- name: me
  user: {` + user + `}
`
}

const aServer, aToken = `server: "https://example.org:6443"`, "token: s3cret"

func TestT9Kubeconfigs(t *testing.T) {
	trap := filepath.Join(t.TempDir(), "trap")
	if err := os.WriteFile(trap, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, user := `clusters["there"].`, `users["me"].`
	tests := map[string]struct{ reason, cluster, user, want string }{
		"token":          {"the usual one; entries of other contexts do not matter", aServer, aToken, ""},
		"path":           {"servers behind one host have paths", `server: "https://example.org/k8s/clusters/c-1"`, aToken, ""},
		"server name":    {"certificates may have another name", aServer + ", tls-server-name: kubernetes", aToken, ""},
		"exec":           {"nothing is executed", aServer, aToken + ", exec: {command: touch, args: [" + trap + "], apiVersion: client.authentication.k8s.io/v1}", user + "exec is not accepted"},
		"auth-provider":  {"nor plugged in", aServer, "auth-provider: {name: gcp, config: {cmd-path: sh}}", user + "auth-provider is not accepted"},
		"token file":     {"no file is read", aServer, "tokenFile: " + trap, user + "tokenFile names a file"},
		"both tokens":    {"also not beside a token", aServer, aToken + ", tokenFile: " + trap, user + "tokenFile names a file"},
		"certificate":    {"no file is read", aServer, "client-certificate: " + trap, user + "client-certificate names a file"},
		"key":            {"no file is read", aServer, "client-key: " + trap, user + "client-key names a file"},
		"authority":      {"no file is read", aServer + ", certificate-authority: " + trap, aToken, cluster + "certificate-authority names a file"},
		"proxy":          {"a proxy goes where the dialer does not see", aServer + `, proxy-url: "http://169.254.169.254"`, aToken, cluster + "proxy-url is not accepted"},
		"insecure":       {"credentials are sent to any server that answers", aServer + ", insecure-skip-tls-verify: true", aToken, cluster + "insecure-skip-tls-verify is not accepted"},
		"plain HTTP":     {"credentials are readable on the network", `server: "http://example.org"`, aToken, cluster + "server has to begin with https://"},
		"other scheme":   {"only one there is", `server: "file:///etc/passwd"`, aToken, cluster + "server is no URL"},
		"no scheme":      {"clientcmd would take http", `server: "example.org:6443"`, aToken, cluster + "server is no URL"},
		"no server":      {"which one?", "", aToken, cluster + "server is missing"},
		"user in URL":    {"it would show in messages", `server: "https://a:b@example.org"`, aToken, cluster + "server must not have a user"},
		"query":          {"it would be part of every path", `server: "https://example.org?a=b"`, aToken, cluster + "server must not have"},
		"as":             {"who acts is said in the spec", aServer, aToken + ", as: admin", user + "as is not accepted"},
		"as groups":      {"who acts is said in the spec", aServer, aToken + ", as-groups: [system:masters]", user + "as-groups is not accepted"},
		"as UID":         {"who acts is said in the spec", aServer, aToken + ", as-uid: a", user + "as-uid is not accepted"},
		"as extra":       {"who acts is said in the spec", aServer, aToken + ", as-user-extra: {a: [b]}", user + "as-user-extra is not accepted"},
		"bad authority":  {"not one certificate", aServer + ", certificate-authority-data: YQ==", aToken, "cannot be read"},
		"half a key":     {"a certificate needs its key", aServer, "client-certificate-data: YQ==", "needs client-certificate-data and client-key-data"},
		"anonymous":      {"the server decides about unauthenticated users", aServer, "", ""},
		"mixed spelling": {"in every spelling", aServer + ", Insecure-Skip-TLS-Verify: true", aToken, cluster + "insecure-skip-tls-verify is not accepted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			parsed, err := tenant.ParseKubeconfig([]byte(kubeconfig(tc.cluster, tc.user)))
			var refused *tenant.KubeconfigError
			switch {
			case tc.want == "" && (err != nil || parsed.Host() == ""):
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			case err != nil && strings.Contains(err.Error(), "s3cret"):
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}

func TestT9KubeconfigsThatAreNone(t *testing.T) {
	good := kubeconfig(aServer, aToken)
	tests := map[string]struct{ reason, data, want string }{
		"empty":            {"nothing", "", "current-context is missing"},
		"no YAML":          {"its text is not shown, for it may be a key", "token: [s3cret", "is not the YAML of a kubeconfig"},
		"bomb":             {"aliases of aliases", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", ""},
		"large":            {"that many contexts are not needed", good + strings.Repeat("#", 256<<10), "bytes, more than the permitted"},
		"no context":       {"which cluster?", strings.Replace(good, "current-context: there", "", 1), "current-context is missing"},
		"unknown context":  {"which cluster?", strings.Replace(good, "current-context: there", "current-context: x", 1), `contexts["x"] is missing`},
		"unknown cluster":  {"which cluster?", strings.Replace(good, "{cluster: there", "{cluster: x", 1), `clusters["x"] is missing`},
		"unknown user":     {"who?", strings.Replace(good, "user: me", "user: x", 1), `users["x"] is missing`},
		"ambiguous":        {"which of them?", strings.Replace(good, "- name: other\n  cluster", "- name: there\n  cluster", 1), `clusters["there"] is there more than once`},
		"another document": {"a list is no kubeconfig", "[]", "is not the YAML of a kubeconfig"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := tenant.ParseKubeconfig([]byte(tc.data))
			var refused *tenant.KubeconfigError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig(aServer, aToken)))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := tenant.ParseKubeconfig(data)
		var refused *tenant.KubeconfigError
		if err != nil && !errors.As(err, &refused) || err == nil && parsed.Host() == "" {
			t.Errorf("%v", err)
		}
	})
}
