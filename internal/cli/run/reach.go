// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/view"
)

// forwardTimeout bounds the start of a port forward.
const forwardTimeout = 20 * time.Second

// way is a connection to the source controller.
type way struct {
	url   string
	close func()
}

// reach connects to the source controller that reconciles the source: by the address of --upload-address, or by a port forward
// to the leader.
func (r *run) reach(ctx context.Context) (way, error) {
	if r.options.address != "" {
		return directWay(r.options.address)
	}
	pods, err := r.sourceControllers(ctx)
	if err != nil {
		return way{}, err
	}
	var failures []error
	for i := range pods {
		found, err := r.forward(ctx, &pods[i])
		if err != nil {
			failures = append(failures, err)
			continue
		}
		reason := r.answers(ctx, found)
		if reason == "" {
			return found, nil
		}
		found.close()
		failures = append(failures, fmt.Errorf("pod %s: %w", pods[i].GetName(), reason.error()))
	}
	return way{}, errors.Join(failures...)
}

// directWay is an address on this machine. Uploads are not encrypted, so a token must not be sent to another machine.
func directWay(address string) (way, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return way{}, fmt.Errorf("--upload-address %q is not of the form HOST:PORT", address)
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return way{}, fmt.Errorf("--upload-address %s is not on this machine: uploads are not encrypted; forward a port to it, and name 127.0.0.1 here", address)
	}
	return way{url: "http://" + address, close: func() {}}, nil
}

// unfit says why a Pod is not the one to upload to.
type unfit string

func (u unfit) error() error { return errors.New(string(u)) }

// answers tells why a Pod is not the one to upload to; "" when it is. It sends a request without a token, which a Pod answers
// only with whether it leads.
func (r *run) answers(ctx context.Context, w way) unfit {
	_, err := upload.Client{BaseURL: w.url, Transport: upload.NewTransport()}.Present(ctx, r.contentOf())
	switch reason := reasonOfUpload(err); reason {
	case upload.Unauthenticated:
		return ""
	case "":
		return unfit(err.Error())
	default:
		return unfit(view.Inline(err.Error()))
	}
}

// sourceControllers are the Pods of the source controller that run.
func (r *run) sourceControllers(ctx context.Context) ([]unstructured.Unstructured, error) {
	namespace := r.options.systemNamespace
	list, err := r.Bodies.Resource(check.PodsResource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: check.PartOfSatchel})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("you may not list the Pods of the namespace %s, to reach the source controller: ask an administrator to bind you to the Role satchel-uploader there (the cluster says: %w)", namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of the namespace %s: %w", namespace, err)
	}
	var running []unstructured.Unstructured
	for _, pod := range list.Items {
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		if phase == "Running" && pod.GetDeletionTimestamp() == nil && strings.HasPrefix(pod.GetLabels()["app.kubernetes.io/name"], check.ControllerNames[0]) {
			running = append(running, pod)
		}
	}
	if len(running) == 0 {
		return nil, fmt.Errorf("no Pod of the source controller runs in the namespace %s: say with --system-namespace where it is, or with --upload-address where it listens", namespace)
	}
	return running, nil
}

// uploadPort is the port on which a Pod accepts uploads.
func uploadPort(pod *unstructured.Unstructured) int {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, c := range containers {
		one, _ := c.(map[string]any)
		arguments, _, _ := unstructured.NestedStringSlice(one, "args")
		for _, argument := range arguments {
			address, found := strings.CutPrefix(argument, "--upload-addr=")
			if _, text, err := net.SplitHostPort(address); found && err == nil {
				if port, err := strconv.Atoi(text); err == nil {
					return port
				}
			}
		}
	}
	return upload.Port
}

// forward opens a port of this machine that leads to a Pod.
func (r *run) forward(ctx context.Context, pod *unstructured.Unstructured) (way, error) {
	dialer, err := podDialer(r.Explorer.Config, pod)
	if err != nil {
		return way{}, err
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	var said bytes.Buffer
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", uploadPort(pod))}, stop, ready, io.Discard, &said)
	if err != nil {
		return way{}, fmt.Errorf("forwarding a port to pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	closed := func() {
		close(stop)
		<-ended //nolint:errcheck // the error is that it was stopped
	}
	select {
	case <-ready:
	case err := <-ended:
		return way{}, forwarding(pod, err)
	case <-time.After(forwardTimeout):
		closed()
		return way{}, forwarding(pod, errors.New("it took too long"))
	case <-ctx.Done():
		closed()
		return way{}, context.Cause(ctx)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		closed()
		return way{}, forwarding(pod, err)
	}
	return way{url: fmt.Sprintf("http://127.0.0.1:%d", ports[0].Local), close: closed}, nil
}

// forwarding says what to do about a port forward that failed.
func forwarding(pod *unstructured.Unstructured, err error) error {
	if apierrors.IsForbidden(err) || strings.Contains(fmt.Sprint(err), "forbidden") {
		return fmt.Errorf("you may not forward a port to pod %s/%s, to reach the source controller: ask an administrator to bind you to the Role satchel-uploader there (the cluster says: %w)",
			pod.GetNamespace(), pod.GetName(), err)
	}
	return fmt.Errorf("forwarding a port to pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), err)
}

// podDialer opens streams to a Pod through the API server, over a WebSocket or, where the server is older, SPDY.
func podDialer(config *rest.Config, pod *unstructured.Unstructured) (httpstream.Dialer, error) {
	api, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	to := &url.URL{Scheme: api.Scheme, Host: api.Host,
		Path: path.Join("/", api.Path, "api/v1/namespaces", pod.GetNamespace(), "pods", pod.GetName(), "portforward")}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	return portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
