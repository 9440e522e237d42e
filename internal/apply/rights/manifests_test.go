// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
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
			if object.GetAnnotations()[inventory.AnnotationOrphaned] != "" {
				mark = " taken up"
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
		"bootstrap Namespace apps", "bootstrap Namespace other", "bootstrap Namespace own taken up", "bootstrap Namespace team",
		"bootstrap Namespace watched", "bootstrap ServiceAccount team/installer",
	}
	for _, part := range []string{"required", "recommended"} {
		want = append(want, part+" ClusterRole.rbac.authorization.k8s.io satchel:team:app:"+part,
			part+" ClusterRoleBinding.rbac.authorization.k8s.io satchel:team:app:"+part)
		for _, namespace := range []string{"apps", "kube-system", "other", "own"} {
			want = append(want, part+" Role.rbac.authorization.k8s.io "+namespace+"/satchel:team:app:"+part,
				part+" RoleBinding.rbac.authorization.k8s.io "+namespace+"/satchel:team:app:"+part)
		}
	}
	if diff := cmp.Diff(want, identities(parts)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
		"ClusterRoleBinding.rbac.authorization.k8s.io b hands out ClusterRole.rbac.authorization.k8s.io view, which the bundle does not contain",
		"ClusterRole.rbac.authorization.k8s.io gathering gathers the rules of other roles",
		"ClusterRole.rbac.authorization.k8s.io root grants what gives whoever holds it any right",
		"Namespace own goes with the bundle only when",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
}
