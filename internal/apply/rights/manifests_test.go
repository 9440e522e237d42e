// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

func identities(parts map[rights.Part][]*unstructured.Unstructured) []string {
	var list []string
	for _, part := range rights.Parts() {
		for _, object := range parts[part] {
			mark := ""
			if !maps.Equal(object.GetAnnotations(), rights.KeptByGitOps()) {
				mark = " that Flux or Argo CD deletes before the BundleDeployment"
			}
			list = append(list, object.GetLabels()[rights.Label]+" "+inventory.IDOf(object).String()+mark)
		}
	}
	return list
}

func TestManifests(t *testing.T) {
	r := request(t, strings.Join([]string{twoMaps, foreign, namespaced}, "\n---\n"))
	r.Namespaces = []string{"watched", "default"}
	parts, err := rights.Manifests(r)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"bootstrap Namespace apps", "bootstrap Namespace other", "bootstrap Namespace team",
		"bootstrap Namespace watched", "bootstrap ServiceAccount team/installer",
	}
	for _, part := range []string{"required", "recommended"} {
		want = append(want, part+" ClusterRole.rbac.authorization.k8s.io satchel:team:app:"+part,
			part+" ClusterRoleBinding.rbac.authorization.k8s.io satchel:team:app:"+part)
		for _, namespace := range []string{"apps", "kube-system", "other"} {
			want = append(want, part+" Role.rbac.authorization.k8s.io "+namespace+"/satchel:team:app:"+part,
				part+" RoleBinding.rbac.authorization.k8s.io "+namespace+"/satchel:team:app:"+part)
		}
	}
	if diff := cmp.Diff(want, identities(parts)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A Namespace of the bundle is created with it: it is neither created before nor orphaned,
// which would release one that exists. No Role can be in it before.
func TestManifestsOfABundleWithItsNamespaces(t *testing.T) {
	const inside = `
apiVersion: v1
kind: Namespace
metadata: {name: WHERE}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: WHERE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: WHERE}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`
	everything := []string{
		": create,delete,get,patch  configmaps [a]", ": create,delete,get,patch  namespaces [WHERE]", ": get  pods",
		": create,delete,get,patch rbac.authorization.k8s.io roles [r]",
	}
	inItself := []string{
		": create,delete,get,patch  namespaces [WHERE]", "WHERE: create,delete,get,patch  configmaps [a]", "WHERE: get  pods",
		"WHERE: create,delete,get,patch rbac.authorization.k8s.io roles [r]",
	}
	for where, tc := range map[string]struct {
		reason    string
		bootstrap []string
		required  []string
		recommend bool // something there
		note      string
	}{
		"own":         {"it is the bundle's", []string{"apps", "team", "watched"}, everything, false, "the ServiceAccount needs its permissions there cluster-wide"},
		"apps":        {"so it is when objects go there that name none", []string{"team", "watched"}, everything, false, "the ServiceAccount needs its permissions there cluster-wide"},
		"watched":     {"so it is when it has to exist", []string{"apps", "team"}, everything, false, "the ServiceAccount needs its permissions there cluster-wide"},
		"team":        {"the account's has to be there", []string{"apps", "team", "watched"}, inItself, true, "refuses to adopt it"},
		"kube-public": {"every cluster has it", []string{"apps", "team", "watched"}, inItself, true, "refuses to adopt it"},
	} {
		t.Run(where, func(t *testing.T) {
			r := request(t, strings.ReplaceAll(inside, "WHERE", where))
			r.Namespaces = []string{"watched"}
			parts, err := rights.Manifests(r)
			if err != nil {
				t.Fatal(err)
			}
			var made []string
			for _, object := range parts[rights.Bootstrap] {
				if !maps.Equal(object.GetAnnotations(), rights.KeptByGitOps()) {
					t.Errorf("%s %s has annotations %v", object.GetKind(), object.GetName(), object.GetAnnotations())
				}
				if object.GetKind() == "Namespace" {
					made = append(made, object.GetName())
				}
			}
			if diff := cmp.Diff(tc.bootstrap, made); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			of, err := rights.Of(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(strings.ReplaceAll(strings.Join(tc.required, "\n"), "WHERE", where), "\n"), lines(of.Required)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, line := range lines(of.Recommended) {
				if strings.HasPrefix(line, ": ") && line != ": list,watch  namespaces" {
					t.Errorf("recommended for one namespace, and everywhere: %s", line)
				}
			}
			there := slices.ContainsFunc(of.Recommended, func(g rights.Grant) bool { return g.Namespace == where })
			if there != tc.recommend {
				t.Errorf("recommended is %v", lines(of.Recommended))
			}
			if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "Namespace "+where+" ") || !strings.Contains(notes, tc.note) {
				t.Errorf("it is noted: %s", notes)
			}
		})
	}
}

func TestManifestsRefuseNames(t *testing.T) {
	for name, change := range map[string]func(*rights.Request){
		"account":    func(r *rights.Request) { r.ServiceAccount = "a:b" },
		"deployment": func(r *rights.Request) { r.Deployment.Name = "a\n---\nb" },
		"namespace":  func(r *rights.Request) { r.Deployment.Namespace = "" },
		"install":    func(r *rights.Request) { r.InstallNamespace = "A" },
		"watched":    func(r *rights.Request) { r.Namespaces = []string{"kube system"} },
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, twoMaps)
			change(&r)
			if _, err := rights.Manifests(r); err == nil {
				t.Error("it became part of manifests")
			}
		})
	}
}

func TestNotes(t *testing.T) {
	r := request(t, strings.Join([]string{foreign, almighty, namespaced}, "\n---\n"))
	all := strings.Join(r.Notes(), "\n")
	for _, want := range []string{
		"ClusterRoleBinding.rbac.authorization.k8s.io b binds ClusterRole.rbac.authorization.k8s.io view, which the bundle does not contain",
		"ClusterRole.rbac.authorization.k8s.io gathering aggregates the rules of other roles",
		"ClusterRole.rbac.authorization.k8s.io root grants permissions that lead to all others",
		"Namespace own is deleted with the bundle only if",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
}
