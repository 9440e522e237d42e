// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// render is a bundle of testdata under a provider.
func render(t *testing.T, bundle string, provider CertificateProvider, changes ...change) Rendered {
	t.Helper()
	o := testOptions()
	o.CertificateProvider = provider
	rendered, err := Convert(bundleWith(t, bundle, changes...), o, manifest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// TestW7SelfSignedCertificates: one a Deployment that serves webhooks, under the names of its Service.
func TestW7SelfSignedCertificates(t *testing.T) {
	certificate := func(deployment string) Certificate {
		host := deployment + "-service.tools"
		return Certificate{Namespace: "tools", Secret: deployment + "-service-cert", DNSNames: []string{host, host + ".svc", host + ".svc.cluster.local"}}
	}
	second := change{csvFile, "generateName: fill.gadgets.tools.example.org\n    deploymentName: gadget-manager", "generateName: fill.gadgets.tools.example.org\n    deploymentName: gadget-exporter"}
	for name, c := range map[string]struct {
		reason, bundle string
		provider       CertificateProvider
		changes        []change
		want           []Certificate
	}{
		"one":                {"two webhooks of one Deployment share a certificate", "gadget", SelfSigned, nil, []Certificate{certificate("gadget-manager")}},
		"two":                {"each Deployment has its own, sorted by Secret", "gadget", SelfSigned, []change{second}, []Certificate{certificate("gadget-exporter"), certificate("gadget-manager")}},
		"no webhooks":        {"nothing to issue", "legacy", SelfSigned, nil, nil},
		"cert-manager":       {"others issue", "gadget", CertManager, nil, nil},
		"service-ca":         {"others issue", "gadget", ServiceCA, nil, nil},
		"Secret of own name": {"only the serving Secret's own name is taken", "gadget", SelfSigned, []change{{"manifests/zz.yaml", "", "apiVersion: v1\nkind: Secret\nmetadata: {name: gadget-manager-service-cert-2}"}}, []Certificate{certificate("gadget-manager")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, render(t, c.bundle, c.provider, c.changes...).Certificates); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestW7SelfSignedDiffersInWordsOnly: the objects are those of the other providers, without what those add, and Pods mount
// the certificate the same way.
func TestW7SelfSignedDiffersInWordsOnly(t *testing.T) {
	for _, bundle := range []string{"gadget", "converter"} {
		t.Run(bundle, func(t *testing.T) {
			want := map[manifest.ID]string{}
			trusting := 0
			for _, m := range render(t, bundle, CertManager).Manifests {
				if strings.HasPrefix(m.Object.GetAPIVersion(), "cert-manager.io/") {
					continue
				}
				if renameAnnotation(m.Object, "cert-manager.io/inject-ca-from", InjectAnnotation) {
					trusting++
				}
				want[manifest.IDOf(m.Object)] = asYAML(t, m.Object.Object)
			}
			got := map[manifest.ID]string{}
			for _, m := range render(t, bundle, SelfSigned).Manifests {
				got[manifest.IDOf(m.Object)] = asYAML(t, m.Object.Object)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-cert-manager +self-signed):\n%s", diff)
			}
			if trusting == 0 {
				t.Error("no object trusts the certificate")
			}
		})
	}
}

func renameAnnotation(object *unstructured.Unstructured, from, to string) bool {
	annotations := object.GetAnnotations()
	value, found := annotations[from]
	if found {
		delete(annotations, from)
		annotations[to] = value
		object.SetAnnotations(annotations)
	}
	return found
}

// TestW7OwnServingSecret: a Secret of the bundle where the certificate goes is refused, for both would write it.
func TestW7OwnServingSecret(t *testing.T) {
	secret := change{"manifests/zz.yaml", "", "apiVersion: v1\nkind: Secret\nmetadata: {name: gadget-manager-service-cert}"}
	o := testOptions()
	o.CertificateProvider = SelfSigned
	_, err := Convert(bundleWith(t, "gadget", secret), o, manifest.Limits{})
	problems := problemsOf(t, err)
	if len(problems) != 1 || problems[0].Rule != "W7" || problems[0].File != secret.file || !strings.Contains(problems[0].Object, "gadget-manager-service-cert") {
		t.Errorf("got %v", err)
	}
}

// TestW1TooManyCertificates: each is read at every look at the cluster, and watched over.
func TestW1TooManyCertificates(t *testing.T) {
	for _, count := range []int{mostCertificates, mostCertificates + 1} {
		b := &bundle.Bundle{Source: manifest.Manifest{File: csvFile, Object: &unstructured.Unstructured{}}}
		for i := range count {
			b.CSV.Spec.WebhookDefinitions = append(b.CSV.Spec.WebhookDefinitions, v1alpha1.WebhookDescription{DeploymentName: fmt.Sprint("d", i)})
		}
		refused := len(checkOptions(b, Options{CertificateProvider: SelfSigned})) > 0
		if refused != (count > mostCertificates) {
			t.Errorf("%d certificates refused: %v", count, refused)
		}
		if found := checkOptions(b, Options{CertificateProvider: CertManager}); len(found) > 0 {
			t.Errorf("%d certificates of others are refused: %v", count, found)
		}
	}
}

// TestC2NamesAllProviders: the message lists the providers to choose from.
func TestC2NamesAllProviders(t *testing.T) {
	for _, provider := range []CertificateProvider{"", "magic"} {
		o := testOptions()
		o.CertificateProvider = provider
		_, err := Convert(bundleWith(t, "gadget"), o, manifest.Limits{})
		problems := problemsOf(t, err)
		if len(problems) != 1 || !strings.Contains(problems[0].Remedy, "cert-manager, self-signed or service-ca") {
			t.Errorf("provider %q: %v", provider, err)
		}
	}
}
