// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// Bounds of requests through the API server's proxy: of a check that the server answers, and of a download.
const (
	answerPatience = 5 * time.Second
	ProxyPatience  = 30 * time.Second
)

// artifacts checks that the artifact server answers through the API server's proxy. A failure is only a warning, because a
// NetworkPolicy may block the proxy and admit the deployment controller.
func (e *Examiner) artifacts(ctx context.Context) {
	const check = "Artifact server"
	services, err := e.Installed(ctx, ServicesResource, PartOfSatchel)
	if err != nil {
		e.add(check, CheckUnknown, "", "the Services of the namespace %s cannot be listed: %s", e.Namespace, e.WhyNot(err))
		return
	}
	if len(services) == 0 {
		e.add(check, CheckFailed, "Apply config/manager.", "there is no Service of the source controller in the namespace %s", e.Namespace)
		return
	}
	for i := range services {
		e.ArtifactServer(ctx, check, services[i].GetName(), servicePort(&services[i]))
	}
}

// servicePort is the first port of a Service, as the proxy names it.
func servicePort(service *unstructured.Unstructured) string {
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	if len(ports) == 0 {
		return "80"
	}
	one, _ := ports[0].(map[string]any)
	if name, _ := one["name"].(string); name != "" {
		return name
	}
	return "80"
}

// ArtifactServer asks the artifact server for one artifact, through the API server, and records what it answers.
func (e *Examiner) ArtifactServer(ctx context.Context, check, service, port string) {
	path := e.published(ctx, service)
	request := e.Raw.Get().AbsPath("/api/v1/namespaces", e.Namespace, "services", "http:"+service+":"+port, "proxy", path)
	code, err := headOf(ctx, request)
	// A 404 that is a Status is the API server's own: the Service has no Endpoints.
	missing := code == http.StatusNotFound && apierrors.IsUnexpectedServerError(err)
	const hint = "See whether the source controller runs. A NetworkPolicy that lets only the deployment controller in (config/network) keeps the proxy out as well; then look at SourceReady of the deployments instead."
	switch {
	case code == http.StatusForbidden || code == http.StatusUnauthorized:
		e.add(check, CheckUnknown, "", "%s cannot be asked: you may not use the proxy of Services in the namespace %s", service, e.Namespace)
	case code == http.StatusOK:
		e.add(check, CheckOK, "", "%s serves %s", service, path)
	case missing && path == "":
		e.add(check, CheckOK, "", "%s answers; nothing is published yet", service)
	case missing:
		e.add(check, CheckFailed, "See the log of the source controller; the source is fetched again within its interval.", "%s does not have %s, which a source advertises", service, path)
	default:
		e.add(check, CheckWarning, hint, "%s does not answer through the API server's proxy: %s", service, view.OneLine(err.Error(), 0))
	}
}

// headOf sends the request, and returns the status code; the error is that of an unsuccessful answer.
func headOf(ctx context.Context, request *rest.Request) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	stream := request.SetHeader("Range", "bytes=0-0").Do(ctx).StatusCode(&code)
	if err = stream.Error(); code == http.StatusPartialContent {
		code = http.StatusOK
	}
	return code, err
}

// published is the path of an artifact that a Service has; empty when none is known.
func (e *Examiner) published(ctx context.Context, service string) string {
	listed, err := e.List(ctx, kit.Sources, true, "")
	if err != nil {
		return ""
	}
	for _, raw := range listed {
		o, err := kit.Typed(kit.Sources, raw)
		source, isSource := o.(*v1alpha1.BundleSource)
		if err != nil || !isSource || source.Status.Artifact == nil {
			continue
		}
		at, err := url.Parse(source.Status.Artifact.URL)
		if err == nil && strings.HasPrefix(at.Hostname(), service+"."+e.Namespace+".svc") {
			return strings.TrimPrefix(at.Path, "/")
		}
	}
	return ""
}
