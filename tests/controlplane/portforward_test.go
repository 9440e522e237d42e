// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// TestPortForward shows how a forwarded port of a fake Pod reaches a server of the test.
func TestPortForward(t *testing.T) {
	controlplane.StopShared(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Nodes: 1, Progress: os.Stderr, KwokConfig: fmt.Sprintf(`
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: all}
spec: {forwards: [{ports: [8080], target: {address: 127.0.0.1, port: %s}}]}
`, port)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	}()
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: main, image: x}]}}"
	if _, err := kubectl(t.Context(), cp, pod, "create", "-n", "default", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := kubectl(t.Context(), cp, "", "wait", "--for=condition=Ready", "--timeout=30s", "pod/x"); err != nil {
		t.Fatal(err)
	}
	if got := getForwarded(t, cp); got != "hello" {
		t.Errorf("got %q", got)
	}
}

// getForwarded gets a page through `kubectl port-forward`.
func getForwarded(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	forward := exec.CommandContext(ctx, filepath.Join(cp.BinDir(), "kubectl"),
		"--kubeconfig", cp.KubeconfigPath(), "port-forward", "pod/x", ":8080")
	forward.Stderr = os.Stderr
	stdout, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	if address == "" {
		t.Fatalf("kubectl printed %q: %v", line, err)
	}
	response, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = forward.Wait()
	return string(body)
}
