// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// kubectl runs kubectl and returns what it prints.
func kubectl(ctx context.Context, cp *controlplane.ControlPlane, stdin string, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", cp.KubeconfigPath()}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(cp.BinDir(), "kubectl"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args[2:], " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func TestKubectlVersion(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	out, err := kubectl(t.Context(), cp, "", "version")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Client Version: v1.36.3", "Server Version: v1.36.3"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in %s", line, out)
		}
	}
}

// TestWorkloads shows which states the fake nodes bring workloads into.
func TestWorkloads(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	namespace := controlplane.NewNamespace(t, cp)
	if _, err := kubectl(t.Context(), cp, "", "apply", "-n", namespace, "-f", "testdata/workloads.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ reason, object, path, want string }{
		{"a Deployment becomes Available, with init containers", "deployment/fine", "{.status.readyReplicas}", "2"},
		{"a StatefulSet with volumes becomes ready", "statefulset/fine", "{.status.readyReplicas}", "2"},
		{"its volume is bound", "pvc/data-fine-1", "{.status.phase}", "Bound"},
		{"a DaemonSet has a Pod on every node", "daemonset/fine", "{.status.numberReady}", "3"},
		{"a Job completes", "job/fine", "{.status.succeeded}", "1"},
		{"a Job can be made to fail", "job/failing", "{.status.conditions[?(@.type=='Failed')].status}", "True"},
		{"a Pod that is not restarted completes", "pod/once", "{.status.phase}", "Succeeded"},
		{"a Job can be kept running", "job/running", "{.status.ready}", "1"},
		{
			"a Pod can be made to crash", "pod -l app=crashing",
			"{.items[0].status.containerStatuses[0].state.waiting.reason}", "CrashLoopBackOff",
		},
		{"and is not ready then", "deployment/crashing", "{.status.unavailableReplicas}", "1"},
		{
			"a Pod can be kept pending", "pod -l app=pending",
			"{.items[0].status.phase} {.items[0].status.conditions[?(@.type=='PodScheduled')].status}", "Pending True",
		},
		{
			"a Service has the ready Pods as endpoints", "endpointslice -l kubernetes.io/service-name=fine",
			"{.items[0].endpoints[*].conditions.ready}", "true true",
		},
	} {
		eventually(t, test.reason, func(ctx context.Context) error {
			args := append([]string{"get", "-n", namespace, "-o", "jsonpath=" + test.path}, strings.Fields(test.object)...)
			got, err := kubectl(ctx, cp, "", args...)
			if err == nil && got != test.want {
				err = fmt.Errorf("%s is %q, not %q", test.object, got, test.want)
			}
			return err
		})
	}
}

func TestCustomResourcesAndPolicies(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	namespace := controlplane.NewNamespace(t, cp)
	if _, err := kubectl(t.Context(), cp, "", "apply", "-f", "testdata/policy.yaml"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := kubectl(context.Background(), cp, "", "delete", "-f", "testdata/policy.yaml"); err != nil {
			t.Error(err)
		}
	}()
	thing := "{apiVersion: example.org/v1, kind: Thing, metadata: {name: %s, namespace: " + namespace + "}, spec: {bad: %t}}"
	attempt := 0
	eventually(t, "the policy refuses", func(ctx context.Context) error {
		attempt++
		_, err := kubectl(ctx, cp, fmt.Sprintf(thing, fmt.Sprintf("bad-%d", attempt), true), "create", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "bad things are refused") {
			return fmt.Errorf("not refused: %w", errors.Join(err, errors.New("created")))
		}
		return nil
	})
	if _, err := kubectl(t.Context(), cp, fmt.Sprintf(thing, "good", false), "create", "-f", "-"); err != nil {
		t.Error(err)
	}
}

func TestNamespaceDeletion(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	namespace := controlplane.NewNamespace(t, cp)
	// The namespace controller looks again after half the longest grace period of a Pod.
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {terminationGracePeriodSeconds: 1, ` +
		`containers: [{name: main, image: "example.org/main:1"}]}}`
	if _, err := kubectl(t.Context(), cp, pod, "create", "-n", namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, cp)
	if err := client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "deleting a namespace with workloads", func(ctx context.Context) error {
		found, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("still there: %v", found.Status.Conditions))
	})
}
