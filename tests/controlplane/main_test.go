// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// childEnv makes the test binary start a control plane and wait to be killed; see TestNoOrphans.
const childEnv = "SATCHEL_TEST_CONTROLPLANE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := beKilled(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(controlplane.RunMain(m))
}

// components returns all components of a control plane.
func components(cp *controlplane.ControlPlane) []*controlplane.Component {
	return []*controlplane.Component{cp.Etcd(), cp.APIServer(), cp.ControllerManager(), cp.Scheduler(), cp.Kwok()}
}

func newClient(t *testing.T, cp *controlplane.ControlPlane) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually polls until the check returns no error, for at most a minute.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
