// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var update = flag.Bool("update", false, "update the golden files")

const systemNamespace = "satchel-system"

// render returns the objects of a kustomization.
func render(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // kustomizations say themselves
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("rendering %s: %v", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		content, err := resource.Map()
		if err != nil {
			t.Fatalf("rendering %s: %v", dir, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}

// decode returns the objects of a kind as their Go type; fields that the type does not know fail.
func decode[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	var decoded []T
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &typed, true); err != nil {
			t.Fatalf("%s %s: %v", kind, o.GetName(), err)
		}
		decoded = append(decoded, typed)
	}
	return decoded
}

// TestKustomizations renders every kustomization, each of which users can apply.
func TestKustomizations(t *testing.T) {
	var found []string
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == "kustomization.yaml" {
			found = append(found, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range found {
		t.Run(dir, func(t *testing.T) {
			for _, o := range render(t, dir) {
				if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
					t.Errorf("an object without apiVersion, kind or name: %v", o.Object)
				}
			}
		})
	}
	if len(found) < 7 {
		t.Errorf("found %d kustomizations: %v", len(found), found)
	}
}

// TestPodsAreRestricted applies the Pod Security Standard as the API server does.
func TestPodsAreRestricted(t *testing.T) {
	objects := render(t, "default")
	deployments := decode[appsv1.Deployment](t, objects, "Deployment")
	if len(deployments) != 2 {
		t.Errorf("got %d Deployments, want the two controllers", len(deployments))
	}
	for _, d := range deployments {
		for _, result := range evaluate(t, d.Spec.Template) {
			if !result.Allowed {
				t.Errorf("%s: %s: %s", d.Name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
}

func evaluate(t *testing.T, template corev1.PodTemplateSpec) []policy.CheckResult {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()},
		&template.ObjectMeta, &template.Spec)
}

// TestRolloutsAreRestricted wants the optional controller as restricted as the others, with its state in the API only.
func TestRolloutsAreRestricted(t *testing.T) {
	objects := render(t, "rollouts")
	deployments := decode[appsv1.Deployment](t, objects, "Deployment")
	if len(deployments) != 1 {
		t.Fatalf("got %d Deployments, want one", len(deployments))
	}
	for _, result := range evaluate(t, deployments[0].Spec.Template) {
		if !result.Allowed {
			t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	container := deployments[0].Spec.Template.Spec.Containers[0]
	if container.Resources.Limits.Memory().IsZero() || container.SecurityContext.ReadOnlyRootFilesystem == nil || !*container.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("its memory has no limit, or its root file system can be written")
	}
	for name, rules := range roles(t, objects) {
		for _, rule := range rules {
			checkRule(t, name, rule)
		}
	}
}

// TestRestrictedCheckBites takes one setting away and wants it noticed.
func TestRestrictedCheckBites(t *testing.T) {
	template := decode[appsv1.Deployment](t, render(t, "default"), "Deployment")[0].Spec.Template
	template.Spec.Containers[0].SecurityContext.Capabilities = nil
	if !slices.ContainsFunc(evaluate(t, template), func(r policy.CheckResult) bool { return !r.Allowed }) {
		t.Error("a container that keeps its capabilities passed as restricted")
	}
}

// TestPodsAreBounded covers what the Pod Security Standard leaves out.
func TestPodsAreBounded(t *testing.T) {
	objects := render(t, "default")
	claims := decode[corev1.PersistentVolumeClaim](t, objects, "PersistentVolumeClaim")
	for _, d := range decode[appsv1.Deployment](t, objects, "Deployment") {
		pod := d.Spec.Template.Spec
		container := pod.Containers[0]
		if context := container.SecurityContext; context.ReadOnlyRootFilesystem == nil || !*context.ReadOnlyRootFilesystem {
			t.Errorf("%s: the root file system can be written", d.Name)
		}
		if container.LivenessProbe == nil || container.ReadinessProbe == nil {
			t.Errorf("%s: a probe is missing", d.Name)
		}
		if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: a memory limit or a CPU request is missing", d.Name)
		}
		for _, volume := range pod.Volumes {
			claim := volume.PersistentVolumeClaim
			if claim != nil && !slices.ContainsFunc(claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == claim.ClaimName }) {
				t.Errorf("%s: nothing claims the volume %s", d.Name, claim.ClaimName)
			}
		}
		if pod.Volumes[0].PersistentVolumeClaim == nil {
			t.Errorf("%s: its state is lost with the Pod", d.Name)
		}
	}
}

// TestAuthenticatedArtifacts wants the two controllers to agree on audience and ServiceAccount, and the Pods to stay restricted.
func TestAuthenticatedArtifacts(t *testing.T) {
	args, audience := map[string][]string{}, ""
	for _, d := range decode[appsv1.Deployment](t, render(t, "overlays/authenticated-artifacts"), "Deployment") {
		for _, result := range evaluate(t, d.Spec.Template) {
			if !result.Allowed {
				t.Errorf("%s: %s: %s", d.Name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
		pod := d.Spec.Template.Spec
		args[d.Name] = pod.Containers[0].Args
		for _, mount := range pod.Containers[0].VolumeMounts {
			token := projectedToken(pod.Volumes, mount.Name)
			if token == nil {
				continue
			}
			audience = token.Audience
			if file := "--artifact-token-file=" + mount.MountPath + "/" + token.Path; !slices.Contains(args[d.Name], file) {
				t.Errorf("%s: no %s", d.Name, file)
			}
		}
	}
	for _, want := range []string{
		"--artifact-auth=token", "--artifact-audience=" + audience,
		"--artifact-readers=system:serviceaccount:" + systemNamespace + ":bundle-deployment-controller",
	} {
		if !slices.Contains(args["bundle-source-controller"], want) {
			t.Errorf("the source controller has no %s: %v", want, args["bundle-source-controller"])
		}
	}
}

// projectedToken is the token in a volume; nil for none.
func projectedToken(volumes []corev1.Volume, name string) *corev1.ServiceAccountTokenProjection {
	for _, v := range volumes {
		if v.Name == name && v.Projected != nil {
			return v.Projected.Sources[0].ServiceAccountToken
		}
	}
	return nil
}

// TestServicesFindTheirPods wants every Service to select a controller and to name one of its ports.
func TestServicesFindTheirPods(t *testing.T) {
	objects := render(t, "default")
	deployments := decode[appsv1.Deployment](t, objects, "Deployment")
	services := decode[corev1.Service](t, objects, "Service")
	if len(services) == 0 {
		t.Error("no Service: the artifacts are not reachable")
	}
	for _, s := range services {
		i := slices.IndexFunc(deployments, func(d appsv1.Deployment) bool {
			return labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels))
		})
		if i < 0 {
			t.Errorf("the Service %s selects no Pod", s.Name)
			continue
		}
		for _, port := range s.Spec.Ports {
			if !hasPort(deployments[i], port.TargetPort.StrVal) {
				t.Errorf("the Service %s forwards to the port %s, which %s does not have", s.Name, port.TargetPort.StrVal, deployments[i].Name)
			}
		}
	}
}

func hasPort(d appsv1.Deployment, name string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
}

// TestNetworkIsClosed wants a policy that denies everything, and no other one that opens a controller to all.
func TestNetworkIsClosed(t *testing.T) {
	policies := decode[networkingv1.NetworkPolicy](t, render(t, "default"), "NetworkPolicy")
	denied := false
	for _, p := range policies {
		if len(p.Spec.PodSelector.MatchLabels) == 0 && len(p.Spec.PolicyTypes) == 2 && len(p.Spec.Ingress)+len(p.Spec.Egress) == 0 {
			denied = true
		}
		for _, in := range p.Spec.Ingress {
			if len(in.From) == 0 || len(in.Ports) == 0 {
				t.Errorf("%s permits all sources, or all ports", p.Name)
			}
		}
		for _, out := range p.Spec.Egress {
			if len(out.Ports) == 0 {
				t.Errorf("%s lets traffic out to every port", p.Name)
			}
		}
	}
	if !denied {
		t.Error("no policy denies what the others do not allow")
	}
}

// TestPermissions compares what each ServiceAccount of Satchel is granted with a golden file, so that a change of
// the manifests that grants more shows in the review. Write it with -update.
func TestPermissions(t *testing.T) {
	for _, dir := range []string{"default", "overlays/namespaced-impersonation", "overlays/authenticated-artifacts", "overlays/shards", "rollouts"} {
		t.Run(dir, func(t *testing.T) {
			got := permissions(t, render(t, dir))
			golden := filepath.Join("testdata", "permissions-"+filepath.Base(dir)+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("permissions changed (-golden +rendered); if that is meant, run the test with -update:\n%s", diff)
			}
		})
	}
}

// TestNoClusterAdmin holds whatever the golden file says.
func TestNoClusterAdmin(t *testing.T) {
	objects := render(t, "default")
	for _, b := range bindings(t, objects) {
		if b.RoleRef.Name == "cluster-admin" {
			t.Errorf("%s grants cluster-admin", b.Name)
		}
	}
	for name, rules := range roles(t, objects) {
		for _, rule := range rules {
			checkRule(t, name, rule)
		}
	}
}

// checkRule refuses wildcards, Secrets, and the verbs that allow privilege escalation. One role gets Secrets by name.
func checkRule(t *testing.T, role string, rule rbacv1.PolicyRule) {
	t.Helper()
	if role == "ClusterRole/satchel-secret-reader" && slices.Equal(rule.Verbs, []string{"get"}) && slices.Equal(rule.Resources, []string{"secrets", "serviceaccounts"}) {
		return
	}
	if role == "Role/satchel-keyring" && slices.Equal(rule.Verbs, []string{"get", "update"}) && slices.Equal(rule.ResourceNames, []string{"bundle-deployment-controller-keys"}) {
		return
	}
	all := slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups, rule.NonResourceURLs)
	for _, forbidden := range []string{"*", "escalate", "bind", "secrets", "serviceaccounts/token"} {
		if slices.Contains(all, forbidden) {
			t.Errorf("%s grants %s", role, forbidden)
		}
	}
	impersonated := [][]string{{"serviceaccounts"}, {"userextras/satchel.dev/deployment"}}
	if slices.Contains(rule.Verbs, "impersonate") && !slices.ContainsFunc(impersonated, func(some []string) bool { return slices.Equal(rule.Resources, some) }) {
		t.Errorf("%s grants to impersonate %v, want one of %v", role, rule.Resources, impersonated)
	}
}

// bindings returns the RoleBindings and ClusterRoleBindings alike.
func bindings(t *testing.T, objects []*unstructured.Unstructured) []rbacv1.RoleBinding {
	t.Helper()
	all := decode[rbacv1.RoleBinding](t, objects, "RoleBinding")
	for _, b := range decode[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		all = append(all, rbacv1.RoleBinding{ObjectMeta: b.ObjectMeta, RoleRef: b.RoleRef, Subjects: b.Subjects})
	}
	return all
}

// roles returns the rules of Roles and ClusterRoles by kind and name.
func roles(t *testing.T, objects []*unstructured.Unstructured) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range decode[rbacv1.Role](t, objects, "Role") {
		rules["Role/"+r.Name] = r.Rules
	}
	for _, r := range decode[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		rules["ClusterRole/"+r.Name] = r.Rules
	}
	return rules
}

// permissions prints a line for each permission of each subject, and of each role that is aggregated to others.
func permissions(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	rules := roles(t, objects)
	var lines []string
	for _, b := range bindings(t, objects) {
		where := "everywhere"
		if b.Namespace != "" {
			where = "in " + b.Namespace
		}
		for _, s := range b.Subjects {
			for _, rule := range rules[b.RoleRef.Kind+"/"+b.RoleRef.Name] {
				lines = append(lines, permissionLines(s.Namespace+"/"+s.Name, where, rule)...)
			}
		}
	}
	for _, r := range decode[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		for label := range r.Labels {
			if to, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
				for _, rule := range r.Rules {
					lines = append(lines, permissionLines("users with the role "+to, "where bound", rule)...)
				}
			}
		}
	}
	slices.Sort(lines)
	var out bytes.Buffer
	for _, line := range slices.Compact(lines) {
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

// permissionLines prints a line for each group, resource and verb of a rule.
func permissionLines(who, where string, rule rbacv1.PolicyRule) []string {
	var lines []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				what := strings.TrimSuffix(resource+"."+group, ".")
				if len(rule.ResourceNames) > 0 {
					what += " named " + strings.Join(rule.ResourceNames, ", ")
				}
				lines = append(lines, fmt.Sprintf("%s: %s %s %s", who, verb, what, where))
			}
		}
	}
	return lines
}

// TestNamespacesAreSet catches an object that kustomize left outside of the controllers' namespace, or put into it although
// its kind has none: an API server answers that there is no such thing.
func TestNamespacesAreSet(t *testing.T) {
	for _, o := range render(t, "default") {
		switch o.GetKind() {
		case "Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			if o.GetNamespace() != "" {
				t.Errorf("%s %s is in the namespace %q, and can be in none", o.GetKind(), o.GetName(), o.GetNamespace())
			}
		default:
			if o.GetNamespace() != systemNamespace {
				t.Errorf("%s %s is in the namespace %q, want %s", o.GetKind(), o.GetName(), o.GetNamespace(), systemNamespace)
			}
		}
	}
}
