// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"slices"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestAudit(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	namespace := controlplane.NewNamespace(t, cp)
	mark, err := cp.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	createConfigMap(t, newClient(t, cp), namespace, "mine")
	account := "system:serviceaccount:" + namespace + ":powerless"
	refuseAs(t, cp, account, namespace)
	watch, err := newClient(t, cp).CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := cp.Audit(mark)
	if err != nil {
		t.Fatal(err)
	}
	watch.Stop()

	requireEvents(t, events, namespace, []string{
		"create configmaps mine 201 ", "get secrets theirs 403 " + account, "watch configmaps  200 ",
	})
	// The end of the watch does not count it a second time.
	if events, err = cp.Audit(mark); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, event := range events {
		if event.Verb == "watch" && event.Namespace == namespace {
			count++
		}
	}
	if count != 1 {
		t.Errorf("the watch is there %d times", count)
	}
}

// refuseAs reads a Secret as a ServiceAccount without the permission.
func refuseAs(t *testing.T, cp *controlplane.ControlPlane, account, namespace string) {
	t.Helper()
	config := cp.RESTConfig()
	config.Impersonate.UserName = account
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "theirs", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("reading a secret without permission: %v", err)
	}
}

// requireEvents checks that the administrator's requests in the namespace are the wanted ones, in order.
func requireEvents(t *testing.T, events []controlplane.AuditEvent, namespace string, want []string) {
	t.Helper()
	var got []string
	for _, e := range events {
		if e.Namespace != namespace || e.User != "kubernetes-admin" {
			continue
		}
		got = append(got, e.Verb+" "+e.Resource+" "+e.Name+" "+strconv.Itoa(e.Code)+" "+e.ImpersonatedUser)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
