// SPDX-License-Identifier: Apache-2.0

package clusterprofile_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/clusterprofile"
)

const user = `{current-context: a, contexts: [{name: a, context: {user: a}}, {name: b, context: {user: b}}, {name: c, context: {user: gone}}, {name: run, context: {user: run}}],
users: [{name: a, user: {token: of-a}}, {name: b, user: {token: of-b}}, {name: run, user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}}]}`

func provider(name, cluster, extension string) string {
	return `{name: ` + name + `, cluster: {server: "https://prod.example.org", ` + cluster + `extensions: [{name: client.authentication.k8s.io/exec, extension: ` + extension + `}]}}`
}

// TestChoose tries what cluster managers write, and what has to be refused (R28): programs, Secrets of other namespaces, what a
// kubeconfig may not have.
func TestChoose(t *testing.T) {
	const byName = `{name: creds, key: config}`
	tests := map[string]struct {
		providers, chosen string
		token, says       string
		isMissing         bool
	}{
		"kubeconfig":                {providers: provider("x", "", byName), token: "of-a"},
		"context":                   {providers: provider("x", "", `{name: creds, key: config, context: b}`), token: "of-b"},
		"token":                     {providers: provider("x", "", `{clusterName: creds}`), token: "plain"},
		"own namespace":             {providers: provider("x", "", `{name: creds, key: config, namespace: fleet}`), token: "of-a"},
		"first that can be used":    {providers: `{name: gke, cluster: {server: "https://a"}}, ` + provider("x", "", byName), token: "of-a"},
		"named":                     {providers: provider("x", "", byName) + ", " + provider("second", "", `{clusterName: creds}`), chosen: "second", token: "plain"},
		"none yet":                  {says: "it has no access provider", isMissing: true},
		"named, not there":          {providers: provider("x", "", byName), chosen: "z", says: `it has no access provider "z"`, isMissing: true},
		"named, without a Secret":   {providers: `{name: gke, cluster: {server: "https://a"}}, ` + provider("x", "", byName), chosen: "gke", says: "no program is executed"},
		"another namespace":         {providers: provider("x", "", `{name: creds, key: config, namespace: kube-system}`), says: `names a Secret of the namespace "kube-system"`},
		"no name":                   {providers: provider("x", "", `{key: config}`), says: "without name and key"},
		"no object":                 {providers: provider("x", "", `text`), says: "not an object"},
		"arguments of a program":    {providers: `{name: x, cluster: {server: "https://a", extensions: [{name: clusterprofiles.multicluster.x-k8s.io/exec/additional-args, extension: [a]}]}}`, says: "needs a program"},
		"no such key":               {providers: provider("x", "", `{name: creds, key: other}`), says: `no key "other"`, isMissing: true},
		"no such context":           {providers: provider("x", "", `{name: creds, key: config, context: z}`), says: `no context "z"`},
		"no such user":              {providers: provider("x", "", `{name: creds, key: config, context: c}`), says: `no user "gone"`},
		"program in the kubeconfig": {providers: provider("x", "", `{name: creds, key: config, context: run}`), says: "exec is not accepted"},
		"proxy":                     {providers: provider("x", `proxy-url: "http://proxy", `, byName), says: "proxy-url is not accepted"},
		"insecure":                  {providers: provider("x", `insecure-skip-tls-verify: true, `, byName), says: "insecure-skip-tls-verify is not accepted"},
		"file":                      {providers: provider("x", `certificate-authority: /etc/passwd, `, byName), says: "names a file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			text := "{metadata: {name: prod, namespace: fleet}, apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, status: {accessProviders: [" + test.providers + "]}}"
			if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
				t.Fatal(err)
			}
			kubeconfig, err := connect(object, test.chosen)
			var known *clusterprofile.Error
			switch {
			case test.says == "" && (err != nil || !strings.Contains(string(kubeconfig), `"token":"`+test.token+`"`) || !strings.Contains(string(kubeconfig), "prod.example.org")):
				t.Errorf("%s, %v", kubeconfig, err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("want %q: %v", test.says, err)
			case test.isMissing != (errors.As(err, &known) && known.Missing):
				t.Errorf("missing is not %t: %v", test.isMissing, err)
			case err != nil && strings.Contains(err.Error(), "of-a"):
				t.Errorf("the token is shown: %v", err)
			}
		})
	}
}

// connect does what Read does with what it has read, and parses the kubeconfig.
func connect(object *unstructured.Unstructured, provider string) ([]byte, error) {
	profile, err := clusterprofile.Decode(object)
	if err != nil {
		return nil, err
	}
	access, err := clusterprofile.Choose(profile, provider)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := access.Kubeconfig(map[string][]byte{"config": []byte(user), "token": []byte("plain")})
	if err != nil {
		return nil, err
	}
	_, err = tenant.ParseKubeconfig(kubeconfig)
	return kubeconfig, err
}
