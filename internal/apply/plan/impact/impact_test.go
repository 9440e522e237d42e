// SPDX-License-Identifier: Apache-2.0

package impact_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
)

// objects reads YAML documents.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		encoded, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(encoded); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		list = append(list, object)
	}
	return list
}

// join puts documents together.
func join(documents ...string) string { return strings.Join(documents, "\n---\n") }

const (
	reader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]`
	everything = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`
	writer = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list, delete]}]`
	inCluster = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]`
	inNamespace = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]`
	localRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: local}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [a], verbs: [get]}]`
	localBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: local}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: local}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}, {kind: Group, name: team}, {kind: User, name: ann}]`
	foreign = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: foreign}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]`
	collecting = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {into: all}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]`
	collected = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: one, labels: {into: all}}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]`
)

func replaced(text, what, by string) string { return strings.ReplaceAll(text, what, by) }

func TestPermissions(t *testing.T) {
	web := `service account "shop/web", `
	for name, tc := range map[string]struct {
		reason        string
		before, after string
		want          []string
	}{
		"a verb": {
			"the difference alone is new",
			join(reader, inCluster), join(writer, inCluster), []string{web + "in the whole cluster: delete pods"},
		},
		"a binding": {
			"a role that is bound now gives all its rules",
			reader, join(reader, inCluster), []string{web + "in the whole cluster: get, list pods"},
		},
		"wider": {
			"what is allowed in one namespace is not allowed in all",
			join(reader, inNamespace), join(reader, inCluster), []string{web + "in the whole cluster: get, list pods"},
		},
		"narrower": {
			"what is allowed everywhere is allowed in a namespace",
			join(reader, inCluster), join(reader, inNamespace), nil,
		},
		"both": {
			"the namespace is not told of what is new everywhere",
			reader, join(reader, inCluster, inNamespace), []string{web + "in the whole cluster: get, list pods"},
		},
		"covered": {
			"a wildcard covers whatever is listed afterwards",
			join(everything, inCluster), join(reader, inCluster), nil,
		},
		"wildcard": {
			"a wildcard is covered by nothing else",
			join(reader, inCluster), join(everything, inCluster), []string{web + "in the whole cluster: * *.*"},
		},
		"another role": {
			"the same rights by another role are not new to the subject",
			join(reader, inCluster), join(replaced(reader, "reader", "other"), replaced(inCluster, "name: reader", "name: other")),
			[]string{`subjects bound to ClusterRole "other", in the whole cluster: get, list pods`},
		},
		"another subject": {
			"the rights are new to it",
			join(reader, inCluster), join(reader, replaced(inCluster, "name: web, namespace", "name: db, namespace")),
			[]string{`service account "shop/db", in the whole cluster: get, list pods`},
		},
		"a namespaced role": {
			"objects without a namespace go into that of the installation",
			"", join(localRole, localBinding),
			[]string{
				`group "team", in namespace "install": get secrets (a)`, web + `in namespace "install": get secrets (a)`,
				`user "ann", in namespace "install": get secrets (a)`,
			},
		},
		"no names": {
			"a rule without names is wider than one with",
			join(localRole, localBinding), join(replaced(localRole, "resourceNames: [a], ", ""), localBinding),
			[]string{
				`group "team", in namespace "install": get secrets`, web + `in namespace "install": get secrets`,
				`user "ann", in namespace "install": get secrets`,
			},
		},
		"a foreign role": {
			"its permissions cannot be read from the bundle",
			"", foreign, []string{web + `in the whole cluster: all that ClusterRole "cluster-admin" allows, which is not among the objects`},
		},
		"a foreign role as before": {"it is bound already", foreign, foreign, nil},
		"a role that leaves": {
			"the binding then means whatever has its name",
			join(reader, inCluster), inCluster,
			[]string{web + `in the whole cluster: all that ClusterRole "reader" allows, which is not among the objects`},
		},
		"aggregation": {
			"what others contribute cannot be told",
			"", join(collecting, collected),
			[]string{web + `in the whole cluster: get deployments.apps; all that ClusterRole "all" allows, which collects the rules of others`},
		},
		"a contribution": {
			"the roles of the bundle are collected as the cluster will",
			collecting, join(collecting, collected), []string{web + "in the whole cluster: get deployments.apps"},
		},
		"another selector": {
			"it may select anything",
			join(collecting, collected), join(replaced(collecting, "into: all", "into: more"), collected),
			[]string{web + `in the whole cluster: all that ClusterRole "all" allows, which collects the rules of others`},
		},
		"into a role of the cluster": {
			"subjects bound to admin get it, and that is reported once",
			"", replaced(collected, "into: all", `rbac.authorization.k8s.io/aggregate-to-admin: "true"`),
			[]string{`subjects bound to ClusterRole "admin", in the whole cluster: get deployments.apps`},
		},
		"a role without a binding here": {
			"others may bind it",
			reader, writer, []string{`subjects bound to ClusterRole "reader", in the whole cluster: delete pods`},
		},
		"a group that everybody is in": {
			"a service account has what its groups have",
			join(reader, replaced(inCluster, "{kind: ServiceAccount, name: web, namespace: shop}", "{kind: Group, name: system:serviceaccounts:shop}")),
			join(reader, inCluster), nil,
		},
		"a user that is a service account": {
			"both ways of writing mean the same", join(reader, inCluster),
			join(reader, replaced(inCluster, "{kind: ServiceAccount, name: web, namespace: shop}", "{kind: User, name: system:serviceaccount:shop:web}")), nil,
		},
		"unreadable": {
			"rules that are no rules are not taken for none", join(reader, inCluster),
			join(replaced(reader, "[get, list]", "7"), inCluster),
			[]string{web + `in the whole cluster: all that ClusterRole "reader" allows, with rules that cannot be read`},
		},
		"labels only": {"they grant nothing", reader, replaced(reader, "name: reader", "name: reader, labels: {a: b}"), nil},
	} {
		var got []string
		for _, p := range impact.Of(objects(t, tc.before), objects(t, tc.after), "install").Permissions {
			got = append(got, p.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (%s): (-want +got)\n%s", name, tc.reason, diff)
		}
	}
}

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: QQ==, service: {name: a}}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, description: what, properties: {size: {type: integer}, size-b: {type: integer}}}}}}`

func TestDefinitions(t *testing.T) {
	more := "properties: {size: {type: integer, properties: {x: {type: string}}}, color: {type: object, properties: {red: {type: string}}}}"
	for name, tc := range map[string]struct {
		reason        string
		before, after string
		want          []string
	}{
		"same":        {"nothing is said", crd, crd, nil},
		"added":       {"it says which kind comes", "", crd, []string{"widgets.example.org is new: kind Widget, namespaced, v1"}},
		"removed":     {"it stays on the cluster unless asked for", crd, "", []string{"widgets.example.org is not part of it any more"}},
		"certificate": {"the trusted authority moves with certificates", crd, replaced(crd, "QQ==", "Qg=="), nil},
		"description": {"the report says that nothing else changes", crd, replaced(crd, "description: what", "description: that"),
			[]string{"widgets.example.org changes: v1: changes descriptions only"}},
		"fields": {
			"fields that come within another one are not named", crd,
			replaced(crd, "properties: {size: {type: integer}, size-b: {type: integer}}", more),
			[]string{"widgets.example.org changes: v1: adds .spec.color, .spec.size.x; v1: removes .spec.size-b"},
		},
		"type": {"a field becomes another one", crd, replaced(crd, "{size: {type: integer}", "{size: {type: string}"),
			[]string{"widgets.example.org changes: v1: changes .spec.size"}},
		"version": {
			"versions come and are no longer served", crd, replaced(crd, "served: true\n    storage: true", "served: false\n    storage: false") +
				"\n  - {name: v2, served: true, storage: true}",
			[]string{"widgets.example.org changes: v1 is no longer served; v1 is no longer stored; adds version v2"},
		},
		"rest": {
			"what is about the whole is named", crd, replaced(replaced(crd, "plural: widgets", "plural: widgets, shortNames: [w]"), "service: {name: a}", "service: {name: b}"),
			[]string{"widgets.example.org changes: changes conversion; changes names"},
		},
		"subresources": {"a part of a version is named", crd, crd + "\n    subresources: {status: {}}\n    deprecated: true",
			[]string{"widgets.example.org changes: v1: changes deprecated, subresources"}},
	} {
		var got []string
		for _, d := range impact.Of(objects(t, tc.before), objects(t, tc.after), "install").Definitions {
			got = append(got, d.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (%s): (-want +got)\n%s", name, tc.reason, diff)
		}
	}
}

const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: init, image: "init:1"}]
      containers:
      - {name: web, image: "web:1", env: [{name: RELATED_IMAGE_X, value: "x:1"}]}
      - {name: side, image: "side:1"}`

func TestWorkloads(t *testing.T) {
	type result struct {
		Images   []impact.Image
		Restarts []string
	}
	image := func(container, from, to string) impact.Image {
		i := impact.Image{Container: container, From: from, To: to}
		i.Object.Group, i.Object.Kind, i.Object.Namespace, i.Object.Name = "apps", "Deployment", "install", "web"
		return i
	}
	stateful := replaced(workload, "kind: Deployment", "kind: StatefulSet")
	for name, tc := range map[string]struct {
		reason        string
		before, after string
		want          result
	}{
		"same": {"nothing is said", workload, workload, result{}},
		"new": {"all images come", "", workload, result{
			Images: []impact.Image{image("init", "", "init:1"), image("side", "", "side:1"), image("web", "", "web:1")},
		}},
		"image": {"the Pods are replaced", workload, replaced(workload, "web:1", "web:2"), result{
			Images:   []impact.Image{image("web", "web:1", "web:2")},
			Restarts: []string{`Deployment.apps install/web .spec.containers[name="web"].image`},
		}},
		"env": {"values of variables are no images", workload, replaced(workload, "x:1", "x:2"), result{
			Restarts: []string{`Deployment.apps install/web .spec.containers[name="web"].env[name="RELATED_IMAGE_X"].value`},
		}},
		"replicas": {"Pods are added and none is replaced", workload, replaced(workload, "replicas: 1", "replicas: 2"), result{}},
		"gone": {"a container goes", workload, replaced(workload, "\n      - {name: side, image: \"side:1\"}", ""), result{
			Images:   []impact.Image{image("side", "side:1", "")},
			Restarts: []string{`Deployment.apps install/web .spec.containers[name="side"]`},
		}},
		"on delete": {
			"the Pods have to be deleted by hand", stateful,
			replaced(stateful, "app: web", "app: other") + "\n  updateStrategy: {type: OnDelete}",
			result{Restarts: []string{"StatefulSet.apps install/web .metadata.labels.app when its Pods are deleted: its update strategy is OnDelete"}},
		},
		"paused": {
			"nothing happens before it is resumed", workload, replaced(workload, "app: web", "app: other") + "\n  paused: true",
			result{Restarts: []string{"Deployment.apps install/web .metadata.labels.app when it is no longer paused"}},
		},
	} {
		of := impact.Of(objects(t, tc.before), objects(t, tc.after), "install")
		got := result{Images: of.Images}
		for _, r := range of.Restarts {
			got.Restarts = append(got.Restarts, strings.TrimSpace(r.Object.String()+" "+strings.Join(r.Fields, " ")+" "+r.Note))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (%s): (-want +got)\n%s", name, tc.reason, diff)
		}
	}
}
