// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/cli"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// rbac is what `satchel rbac` prints for a bundle in a folder, limited to objects by name, without what it only recommends.
func (d *deployment) rbac(t *testing.T, dir string, more ...string) []*unstructured.Unstructured {
	t.Helper()
	args := append([]string{"rbac", dir, "--strict", "--install-namespace", d.namespace, "--name", d.name, "--service-account", installer}, more...)
	if d.own {
		args = append(args, "--watch-namespace", d.namespace)
	}
	out, code := d.satchel(t, args...)
	if code != kit.ExitOK {
		t.Fatalf("satchel %v: exit code %d: %s", args, code, out)
	}
	return manifests(t, out)
}

// satchel runs the command line as an administrator, and returns what it printed and its exit code.
func (d *deployment) satchel(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	program := kit.Program{
		Path: "satchel", Version: kit.BuildVersion(""), Now: time.Now,
		Streams: genericiooptions.IOStreams{In: new(bytes.Buffer), Out: &out, ErrOut: &diagnostics},
	}
	code := cli.Run(t.Context(), program, args)
	if code == kit.ExitError {
		t.Logf("satchel %v: %s", args, &diagnostics)
	}
	return out.String(), code
}

// manifests are the objects of a YAML stream, without what is only recommended.
func manifests(t *testing.T, stream string) []*unstructured.Unstructured {
	t.Helper()
	var printed []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(stream)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return printed
		}
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.Object != nil && object.GetLabels()[rights.Label] != string(rights.Recommended) {
			printed = append(printed, object)
		}
	}
}

// grant applies what was printed, as an administrator does.
func (r *rig) grant(t *testing.T, printed []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range printed {
		err := r.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("administrator"), client.ForceOwnership)
		if err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "ClusterRole" || object.GetKind() == "ClusterRoleBinding" {
			t.Cleanup(func() {
				_ = client.IgnoreNotFound(r.admin.Delete(context.WithoutCancel(t.Context()), object.DeepCopy()))
			})
		}
	}
}

// requiredRule is one rule of a role that was printed.
type requiredRule struct {
	role  *unstructured.Unstructured
	index int
	rbacv1.PolicyRule
}

// requiredRules are those of all roles, in the order in which they were printed.
func requiredRules(t *testing.T, printed []*unstructured.Unstructured) []requiredRule {
	t.Helper()
	var out []requiredRule
	for _, object := range printed {
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil || object.Object["rules"] == nil {
			continue
		}
		for i, rule := range role.Rules {
			out = append(out, requiredRule{role: object, index: i, PolicyRule: rule})
		}
	}
	return out
}

// without is the role that lacks the rule, and others where they are of the same role.
func (rule requiredRule) without(others ...requiredRule) *unstructured.Unstructured {
	lesser := rule.role.DeepCopy()
	rules, _ := lesser.Object["rules"].([]any)
	left := []any{}
	for i, written := range rules {
		gone := slices.ContainsFunc(append(others, rule), func(other requiredRule) bool { return other.role == rule.role && other.index == i })
		if !gone {
			left = append(left, written)
		}
	}
	lesser.Object["rules"] = left
	return lesser
}

// change gives the ServiceAccount another version of a role, and waits until the API server enforces it.
func (d *deployment) change(t *testing.T, role *unstructured.Unstructured, rule requiredRule, allowed bool) {
	t.Helper()
	d.grant(t, []*unstructured.Unstructured{role})
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + d.namespace + ":" + installer,
	}}
	if len(rule.NonResourceURLs) > 0 {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: rule.Verbs[0], Path: rule.NonResourceURLs[0]}
	} else {
		review.Spec.ResourceAttributes = rule.attributes()
	}
	d.eventually(t, t.Context(), "the API server goes by the changed role", func(ctx context.Context) (bool, string) {
		answer := review.DeepCopy()
		err := d.admin.Create(ctx, answer)
		return err == nil && answer.Status.Allowed == allowed, answer.String()
	})
}

func (rule requiredRule) attributes() *authorizationv1.ResourceAttributes {
	asked := &authorizationv1.ResourceAttributes{
		Namespace: rule.role.GetNamespace(), Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
	}
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	return asked
}
