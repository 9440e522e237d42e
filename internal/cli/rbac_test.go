// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/rbac"
	"github.com/satchel-dev/satchel/internal/convert"
)

func TestRBACOfAnOperator(t *testing.T) {
	got := satchel(t, "rbac", bundles+"registry", "--install-namespace", "demo", "--namespace", "team", "--name", "greeter")
	golden(t, "rbac/registry", got.String())
	if again := satchel(t, "rbac", bundles+"registry", "--install-namespace", "demo", "-n", "team", "--name", "greeter"); again != got {
		t.Errorf("the second time differs:\n%s", again)
	}
}

func TestRBACOfManifests(t *testing.T) {
	golden(t, "rbac/plain", satchel(t, "rbac", bundles+"plain", "--install-namespace", "demo", "--only", "required").String())
}

// With --strict each rule lists names, so that another name needs another rule.
func TestRBACStrict(t *testing.T) {
	golden(t, "rbac/strict", satchel(t, "rbac", bundles+"plain", "--install-namespace", "demo", "--only", "required", "--strict").String())
}

// On a remote cluster the ServiceAccount needs permission to identify the cluster.
func TestRBACOnAnotherCluster(t *testing.T) {
	got := satchel(t, "rbac", bundles+"plain", "--install-namespace", "demo", "-n", "team", "--name", "greeter", "--remote", "--only", "required")
	golden(t, "rbac/remote", got.String())
}

// If nothing is ever deleted, permissions to delete are left out, also for an earlier version's objects.
func TestRBACThatKeepsObjects(t *testing.T) {
	got := satchel(t, "rbac", bundles+"registry", "--install-namespace", "demo", "--upgrade-from", bundles+"plain", "--keep-objects", "--only", "required")
	if strings.Contains(got.Out, "delete") || !strings.Contains(got.Out, "patch") {
		t.Errorf("the rights are:\n%s", got)
	}
	if got := satchel(t, "rbac", bundles+"plain", "--install-namespace", "demo", "--only", "required"); !strings.Contains(got.Out, "delete") {
		t.Errorf("without the flag the rights are:\n%s", got)
	}
}

// parts lists the labels of a stream, in order, each once in a row.
func partsOf(t *testing.T, stream string) []string {
	t.Helper()
	var found []string
	for document := range strings.SplitSeq(stream, "---\n") {
		var o struct {
			Metadata struct{ Labels map[string]string }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if part := o.Metadata.Labels[rights.Label]; part != "" {
			found = append(found, part)
		}
	}
	return slices.Compact(found)
}

func TestRBACParts(t *testing.T) {
	for only, want := range map[string][]string{
		"": {"bootstrap", "required", "recommended"}, "bootstrap": {"bootstrap"}, "required": {"required"}, "recommended": {"recommended"},
	} {
		args := []string{"rbac", bundles + "registry", "--install-namespace", "demo"}
		if only != "" {
			args = append(args, "--only", only)
		}
		got := satchel(t, args...)
		if parts := partsOf(t, got.Out); got.Code != kit.ExitOK || !slices.Equal(parts, want) {
			t.Errorf("--only %q printed %v, want %v; exit %d, %s", only, parts, want, got.Code, got.Err)
		}
	}
}

func TestRBACRefuses(t *testing.T) {
	t.Chdir(bundles)
	install := []string{"--install-namespace", "demo"}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"broken bundle":  {"all problems at once, as render does", append(install, "./broken"), "the bundle is refused, 3 problems:"},
		"broken earlier": {"said of which one", append(install, "plain", "--upgrade-from", "./broken"), "reading the version to upgrade from, ./broken: the bundle is refused"},
		"no namespace":   {"nothing is guessed", []string{"./plain"}, "rbac needs --install-namespace"},
		"no cluster":     {"a name without --install-namespace is that of a deployment", []string{"plain", "--upgrade-from", "./plain"}, "--upgrade-from is about folders and images"},
		"missing of one": {"only a cluster knows what is missing", append(install, "./plain", "--missing"), "--missing needs the name of a BundleDeployment"},
		"two bundles":    {"one at a time", append(install, "a", "b"), "got 2: a b"},
		"unknown part":   {"the words are listed", append(install, "plain", "--only", "some"), "not one of: bootstrap, required, recommended"},
		"bad name":       {"it becomes part of names", append(install, "plain", "--name", "a.b"), `name "a.b" of the BundleDeployment`},
		"bad account":    {"it becomes a subject", append(install, "plain", "--service-account", "a:b"), `service account "a:b"`},
		"bad namespace":  {"it becomes a subject", append(install, "plain", "-n", "a b"), `namespace "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, append([]string{"rbac"}, tc.args...)...)
			if got.Code != kit.ExitError || got.Out != "" || !strings.Contains(got.Err, tc.want) {
				t.Errorf("%s: want exit 2, nothing on standard output, and %q; got %s", tc.reason, tc.want, got)
			}
		})
	}
}

func writeBundle(t *testing.T, manifests string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Resources that only a cluster knows are guessed, with a note; an upgrade needs permissions for the objects that it deletes.
func TestRBACGuesses(t *testing.T) {
	now := writeBundle(t, "apiVersion: example.org/v1\nkind: Policy\nmetadata: {name: a}\n")
	before := writeBundle(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old}\n")
	got := satchel(t, "rbac", now, "--install-namespace", "demo", "--name", "app", "--upgrade-from", before, "--strict")
	for _, want := range []string{"# guessed, because neither Kubernetes nor the bundle defines it: policies.example.org\n", "- policies\n", "- old\n"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if want := "neither Kubernetes nor the bundle defines Policy.example.org: its resource is taken to be policies.example.org, in namespaces"; !strings.Contains(got.Err, want) {
		t.Errorf("%q is missing in\n%s", want, got.Err)
	}
}

// A bundle cannot make the output show less than it grants: misleading names are refused.
func TestRBACOfAHostileBundle(t *testing.T) {
	role := func(rule string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules: [" + rule + "]\n"
	}
	for name, manifests := range map[string]string{
		"a second document":   role(`{apiGroups: ["x\n---\napiVersion: v1"], resources: [pods], verbs: [get]}`),
		"a comment's end":     "apiVersion: \"x.org\\n---\\n/v1\"\nkind: Widget\nmetadata: {name: a, namespace: demo}\n",
		"all resources":       "apiVersion: example.org/v1\nkind: \"*\"\nmetadata: {name: a}\n",
		"all groups":          "apiVersion: \"*/v1\"\nkind: Widget\nmetadata: {name: a}\n",
		"text that runs back": role("{apiGroups: [''], resources: [pods], verbs: [\"\u202eteg\"]}"),
		"a thousand million":  role(`{apiGroups: [` + strings.Repeat("a,", 1000) + `b], resources: [` + strings.Repeat("a,", 1000) + `b], verbs: [` + strings.Repeat("a,", 1000) + `b]}`),
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, "rbac", writeBundle(t, manifests), "--install-namespace", "demo", "--name", "app")
			if got.Code != kit.ExitError || got.Out != "" {
				t.Errorf("it was printed: %s", got)
			}
		})
	}
}

// publishedBundles returns the folders of the corpus beside the repository.
func publishedBundles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../../../shared/corpus/registryv1/bundles/*/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("the corpus of published bundles is not beside the repository (../shared/corpus), so their rights are not computed")
	}
	return found
}

// For each published bundle, the check notices each required rule or verb that is removed.
func TestRBACOfPublishedBundles(t *testing.T) {
	for _, dir := range publishedBundles(t) {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			o := rbac.Options{Deployment: "app", ServiceAccount: "installer"}
			o.InstallNamespace = "demo"
			result, err := convert.Convert(os.DirFS(dir), o.Convert())
			if err != nil { // it cannot watch all namespaces
				o.WatchNamespaces = []string{"demo"}
				result, err = convert.Convert(os.DirFS(dir), o.Convert())
			}
			if err != nil {
				t.Fatal(err)
			}
			request, guessed := o.Request(result)
			if len(guessed) > 0 {
				t.Errorf("guessed: %v", guessed)
			}
			nothingToSpare(t, request)
		})
	}
}

func nothingToSpare(t *testing.T, request rights.Request) {
	t.Helper()
	demands, wrong := rights.Demands(request.Objects)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	needs := rights.Needs(request)
	enough := func(grants []rights.Grant) bool {
		held := rights.Held{}
		for _, grant := range grants {
			held[grant.Namespace] = rights.NewRules(grant.Rules)
		}
		return rights.FindMissing(needs, demands, held).None()
	}
	found, err := rights.Of(request)
	if err != nil {
		t.Fatal(err)
	}
	if !enough(found.Required) {
		t.Fatal("what is required is not enough")
	}
	for i, grant := range found.Required {
		for j, rule := range grant.Rules {
			for verb := range rule.Verbs {
				less := rule
				less.Verbs = slices.Concat(rule.Verbs[:verb], rule.Verbs[verb+1:])
				grants := slices.Clone(found.Required)
				grants[i].Rules = slices.Concat(grant.Rules[:j], grant.Rules[j+1:])
				if len(less.Verbs) > 0 {
					grants[i].Rules = append(grants[i].Rules, less)
				}
				if enough(grants) {
					t.Errorf("without the verb %s of %q %v nothing is missed", rule.Verbs[verb], grant.Namespace, rule)
				}
			}
		}
	}
}
