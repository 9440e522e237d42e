// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestR4Hashes are the vectors of rule R4: names must be those that OLM v1 gives.
func TestR4Hashes(t *testing.T) {
	widgets := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"example.com"}, Resources: []string{"widgets"}}
	for name, c := range map[string]struct {
		reason, account string
		rules           []rbacv1.PolicyRule
		want            string
	}{
		"promoted":   {"the namespaces rule is hashed as well", "s", []rbacv1.PolicyRule{widgets, namespacesRule}, "2nlzwe5cgnhh59xjd8jcszmwndscx0y6ejiyr7v1kuem"},
		"as written": {"one rule alone", "widget-sa", []rbacv1.PolicyRule{widgets}, "vuvk943380d0q8sv5tupnl33z7trxx925soopiq714u"},
		"no account": {"the raw name is hashed, not default", "", []rbacv1.PolicyRule{widgets, namespacesRule}, "15agbbt4xhf5jwtg76du1sidgz0mvn304vypms2prnge"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := permissionHash(v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: c.account, Rules: c.rules})
			if err != nil || got != c.want {
				t.Errorf("%s: %q, %v, want %q", c.reason, got, err, c.want)
			}
		})
	}
}

// TestR3JoinName pins the cut and its off-by-one.
func TestR3JoinName(t *testing.T) {
	for name, c := range map[string]struct{ reason, base, suffix, want string }{
		"short":       {"nothing is cut", "a", "b", "a-b"},
		"sixty-two":   {"62 bytes and a dash are a label", strings.Repeat("a", 52), strings.Repeat("b", 10), strings.Repeat("a", 52) + "-" + strings.Repeat("b", 10)},
		"sixty-three": {"63 bytes and a dash are one too many, as in OLM", strings.Repeat("a", 53), strings.Repeat("b", 10), strings.Repeat("a", 53) + "-" + strings.Repeat("b", 10)},
		"sixty-four":  {"from here on the base is cut", strings.Repeat("a", 54), strings.Repeat("b", 10), strings.Repeat("a", 52) + "-" + strings.Repeat("b", 10)},
		"hyphen":      {"the cut may leave a dot or dash", "argocd-operator.v0.1.0-x", strings.Repeat("b", 44), "argocd-operator.v0-" + strings.Repeat("b", 44)},
		"endless":     {"a suffix longer than a label leaves nothing of the base", "a", strings.Repeat("b", 70), "-" + strings.Repeat("b", 70)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := joinName(c.base, c.suffix); got != c.want {
				t.Errorf("%s: %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// TestW1ServiceNames: valid for all lengths, OLM's for the short ones, and without collisions.
func TestW1ServiceNames(t *testing.T) {
	seen := map[string]string{}
	for length := 1; length <= 63; length++ {
		for _, last := range []string{"x", "y"} {
			deployment := strings.Repeat("d", length-1) + last
			service := serviceName(deployment)
			if problems := validation.IsDNS1035Label(service); len(problems) > 0 {
				t.Errorf("deployment of %d bytes: service %q: %v", length, service, problems)
			}
			if length <= 55 && service != deployment+"-service" {
				t.Errorf("%q differs from OLM's name", service)
			}
			for _, name := range []string{service, certificateName(service)} {
				if other, taken := seen[name]; taken {
					t.Errorf("%q and %q share the name %q", deployment, other, name)
				}
				seen[name] = deployment
			}
		}
	}
	if got := serviceName("a.b.c"); got != "a-b-c-service" {
		t.Errorf("dots are not for labels: %q", got)
	}
}
