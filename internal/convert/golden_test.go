// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// rendering is a bundle of testdata with options; its name is that of its golden file.
type rendering struct {
	reason string
	bundle string
	o      convert.Options
}

func withV1(o registryv1.Options) convert.Options {
	if o.CertificateProvider == "" {
		o.CertificateProvider = registryv1.CertManager
	}
	return convert.Options{InstallNamespace: "tools", RegistryV1: o}
}

var renderings = map[string]rendering{
	"gadget-all": {
		reason: "permissions become cluster permissions, webhooks select nothing",
		bundle: "gadget", o: withV1(registryv1.Options{}),
	},
	"gadget-own": {
		reason: "Roles live in the one namespace",
		bundle: "gadget", o: withV1(registryv1.Options{WatchNamespaces: []string{"tools"}}),
	},
	"gadget-single": {
		reason: "Roles are also made where the operator elects its leader",
		bundle: "gadget", o: withV1(registryv1.Options{WatchNamespaces: []string{"team-a"}}),
	},
	"gadget-multi": {
		reason: "the targets are sorted and repeated in webhooks and annotations",
		bundle: "gadget", o: withV1(registryv1.Options{WatchNamespaces: []string{"team-b", "team-a", "team-b", "tools"}}),
	},
	"gadget-service-ca": {
		reason: "OpenShift's provider needs annotations only",
		bundle: "gadget", o: withV1(registryv1.Options{CertificateProvider: registryv1.ServiceCA}),
	},
	"gadget-self-signed": {
		reason: "the objects say what certificates they trust and mount; the certificates themselves are no part of the rendering",
		bundle: "gadget", o: withV1(registryv1.Options{CertificateProvider: registryv1.SelfSigned}),
	},
	"gadget-options": {
		reason: "every option shows",
		bundle: "gadget", o: withV1(registryv1.Options{
			OperatorConditions: true, APIClusterRoles: true, IncludeCustomResources: true, PodAnnotations: registryv1.RequiredAnnotations,
			DeploymentConfig: json.RawMessage(`{"env": [{"name": "LOG_LEVEL", "value": "debug"}, {"name": "EXTRA", "value": "1"}],
				"resources": {"limits": {"memory": "256Mi"}}, "nodeSelector": {"pool": "infra"},
				"annotations": {"team": "tools", "capabilities": "kept as it is"}}`),
		}),
	},
	"converter-all": {
		reason: "a conversion webhook is written into its CRD, JSON and aliases are read",
		bundle: "converter", o: withV1(registryv1.Options{}),
	},
	"converter-self-signed": {
		reason: "a CRD with a conversion webhook trusts the certificate, too",
		bundle: "converter", o: withV1(registryv1.Options{CertificateProvider: registryv1.SelfSigned}),
	},
	"legacy-own": {
		reason: "an old CRD becomes v1, a missing apiVersion is inferred, equal permissions count once, the namespace has a default",
		bundle: "legacy", o: withV1(registryv1.Options{}),
	},
	"chart-shop": {
		reason: "a chart with aliases, CRDs, files and a schema; CRDs come first",
		bundle: "../../helm/testdata/charts/shop",
		o: convert.Options{InstallNamespace: "shop", Helm: helm.Options{ReleaseName: "demo", Values: map[string]any{
			"password": "hunter22", "archive": map[string]any{"enabled": true}, "tags": map[string]any{"mail": true},
		}}},
	},
	"chart-hooks": {
		reason: "hooks are apart, in their order",
		bundle: "../../helm/testdata/charts/hooks", o: convert.Options{InstallNamespace: "shop", Helm: helm.Options{ReleaseName: "demo"}},
	},
	"shop-plain": {
		reason: "plain manifests keep their order and namespaces, and lose what servers fill in",
		bundle: "shop", o: convert.Options{InstallNamespace: "shop"},
	},
}

// serialize writes a result as a stream, with what is not an object as comments.
func serialize(t testing.TB, r convert.Result) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString("# format: " + string(r.Format) + "\n")
	for _, w := range r.Warnings {
		out.WriteString("# warning: " + w + "\n")
	}
	for _, n := range r.RequiredNamespaces {
		out.WriteString("# namespace: " + n + "\n")
	}
	for _, c := range r.Certificates {
		out.WriteString("# certificate: " + c.Namespace + "/" + c.Secret + " for " + strings.Join(c.DNSNames, ", ") + "\n")
	}
	for _, u := range r.Undecided {
		out.WriteString("# undecided: " + u.GetKind() + " " + u.GetName() + "\n")
	}
	for _, o := range r.Objects {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	for _, h := range r.Hooks {
		data, err := yaml.Marshal(h.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n# hook: %v, weight %d, %v\n%s", h.Events, h.Weight, h.DeletePolicies, data)
	}
	return out.Bytes()
}

// TestGolden pins what own bundles become.
func TestGolden(t *testing.T) {
	for name, r := range renderings {
		t.Run(name, func(t *testing.T) {
			result, err := convert.Convert(os.DirFS(filepath.Join("testdata", "bundles", r.bundle)), r.o)
			if err != nil {
				t.Fatalf("%s: %v", r.reason, err)
			}
			got := serialize(t, result)
			file := filepath.Join("testdata", "golden", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-golden +got):\n%s", r.reason, diff)
			}
		})
	}
}
