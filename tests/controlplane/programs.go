// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/tests/controlplane/pki"
)

const (
	// ServiceCIDR is the range of service addresses. Nothing routes it, so a call to a ClusterIP fails at
	// once and never leaves the machine.
	ServiceCIDR = "198.18.0.0/16"
	// podCIDR is the range of pod addresses, unroutable as well.
	podCIDR = "198.19.0.1/16"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

//go:embed kwok.yaml
var kwokConfig string

// layout knows the files, ports and options of a control plane, and the arguments that follow from them.
type layout struct {
	dir   string
	certs pki.Dir
	ports ports
	opts  Options
	etcd  string // host and port for the API server
}

func (l layout) path(name string) string       { return filepath.Join(l.dir, name) }
func (l layout) kubeconfig(user string) string { return l.path(user + ".kubeconfig") }
func (l layout) audit() string                 { return l.path("audit.log") }

// writeFiles writes all that the programs read.
func (l layout) writeFiles() error {
	if err := os.MkdirAll(l.path("logs"), 0o700); err != nil {
		return fmt.Errorf("creating the folder of logs: %w", err)
	}
	for name, data := range map[string]string{
		"audit-policy.yaml": string(auditPolicy),
		"kwok.yaml":         kwokConfig + "---\n" + l.opts.KwokConfig,
	} {
		if err := os.WriteFile(l.path(name), []byte(data), 0o600); err != nil {
			return fmt.Errorf("writing the configuration: %w", err)
		}
	}
	for _, user := range []string{pki.AdminUser, "controller-manager", "scheduler", "kwok"} {
		if err := l.certs.WriteKubeconfig(l.kubeconfig(user), url(l.ports.APIServer), user); err != nil {
			return err
		}
	}
	return nil
}

func (l layout) etcdArgs() []string {
	args := []string{
		"--name=satchel",
		"--data-dir=" + l.path("etcd"),
		"--listen-client-urls=" + url(l.ports.Etcd),
		"--advertise-client-urls=" + url(l.ports.Etcd),
		"--listen-peer-urls=" + url(l.ports.EtcdPeer),
		"--initial-advertise-peer-urls=" + url(l.ports.EtcdPeer),
		"--initial-cluster=satchel=" + url(l.ports.EtcdPeer),
		"--client-cert-auth",
		"--peer-client-cert-auth",
		"--quota-backend-bytes=" + strconv.Itoa(8<<30),
		"--log-level=warn",
	}
	for _, prefix := range []string{"--", "--peer-"} {
		args = append(args,
			prefix+"cert-file="+l.certs.Cert("etcd"),
			prefix+"key-file="+l.certs.Key("etcd"),
			prefix+"trusted-ca-file="+l.certs.Cert(pki.EtcdCA))
	}
	if !l.opts.Fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (l layout) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=https://" + l.etcd,
		"--etcd-cafile=" + l.certs.Cert(pki.EtcdCA),
		"--etcd-certfile=" + l.certs.Cert("etcd-client"),
		"--etcd-keyfile=" + l.certs.Key("etcd-client"),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(l.ports.APIServer),
		"--tls-cert-file=" + l.certs.Cert("apiserver"),
		"--tls-private-key-file=" + l.certs.Key("apiserver"),
		"--client-ca-file=" + l.certs.Cert(pki.ClusterCA),
		// A loopback address is no valid endpoint of the service "kubernetes", so it gets none.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + ServiceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--kubelet-preferred-address-types=InternalIP",
		"--profiling=false",
	}
	args = append(args, l.serviceAccountArgs()...)
	args = append(args, l.aggregationArgs()...)
	args = append(args, l.auditArgs()...)
	return append(args, l.opts.APIServerArgs...)
}

func (l layout) serviceAccountArgs() []string {
	return []string{
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.certs.Key(pki.ServiceAccountKey),
		"--service-account-signing-key-file=" + l.certs.Key(pki.ServiceAccountKey),
	}
}

func (l layout) aggregationArgs() []string {
	return []string{
		"--proxy-client-cert-file=" + l.certs.Cert("front-proxy-client"),
		"--proxy-client-key-file=" + l.certs.Key("front-proxy-client"),
		"--requestheader-client-ca-file=" + l.certs.Cert(pki.FrontProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
}

func (l layout) auditArgs() []string {
	return []string{
		"--audit-policy-file=" + l.path("audit-policy.yaml"),
		"--audit-log-path=" + l.audit(),
		// The size is in MiB, and zero would mean 100: rotating would move what an AuditMark points to.
		"--audit-log-maxsize=1048576",
	}
}

// nodeGracePeriod is longer than any run.
const nodeGracePeriod = "24h"

func (l layout) controllerManagerArgs() []string {
	args := []string{
		// On a machine that is busy for long, kwok's heartbeats come late. A node would be held for dead then, and its Pods for
		// not ready; a kubelet says otherwise soon after, kwok never does.
		"--node-monitor-grace-period=" + nodeGracePeriod,
		"--root-ca-file=" + l.certs.Cert(pki.ClusterCA),
		"--service-account-private-key-file=" + l.certs.Key(pki.ServiceAccountKey),
		"--use-service-account-credentials",
		"--cluster-signing-cert-file=" + l.certs.Cert(pki.ClusterCA),
		"--cluster-signing-key-file=" + l.certs.Key(pki.ClusterCA),
		"--kube-api-qps=" + formatQPS(l.opts.QPS),
		"--kube-api-burst=" + formatQPS(2*l.opts.QPS),
	}
	args = append(args, l.controllerArgs("controller-manager", l.ports.ControllerManager)...)
	return append(args, l.opts.ControllerManagerArgs...)
}

func (l layout) schedulerArgs() []string {
	return l.controllerArgs("scheduler", l.ports.Scheduler)
}

// controllerArgs are common to controller-manager and scheduler.
func (l layout) controllerArgs(user string, port int) []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(user),
		"--authentication-kubeconfig=" + l.kubeconfig(user),
		"--authorization-kubeconfig=" + l.kubeconfig(user),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + l.certs.Cert("component"),
		"--tls-private-key-file=" + l.certs.Key("component"),
		"--profiling=false",
	}
}

func (l layout) kwokArgs() []string {
	return []string{
		"--config=" + l.path("kwok.yaml"),
		"--kubeconfig=" + l.kubeconfig("kwok"),
		"--manage-all-nodes",
		"--cidr=" + podCIDR,
		"--node-ip=127.0.0.1",
		"--node-port=" + strconv.Itoa(l.ports.Kwok),
		"--server-address=" + address(l.ports.Kwok),
		"--tls-cert-file=" + l.certs.Cert("component"),
		"--tls-private-key-file=" + l.certs.Key("component"),
	}
}

func formatQPS(qps float32) string { return strconv.FormatFloat(float64(qps), 'f', 0, 32) }

// probe returns a health check: a GET of the path on the port that must answer 200.
func probe(config *tls.Config, port int, path string) func(context.Context) error {
	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
	}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url(port)+path, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return fmt.Errorf("%s answered %s: %s", path, response.Status, strings.TrimSpace(string(body)))
	}
}
