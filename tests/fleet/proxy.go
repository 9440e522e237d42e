// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Fault is what is wrong with a simulated cluster. The zero value is nothing.
type Fault struct {
	// Silent: requests are not answered.
	Silent bool
	// Refuses: connections are closed without an answer.
	Refuses bool
	// Denies: writes with this text in their body are forbidden, as an admission policy would.
	Denies string
}

// Cluster is a simulated cluster.
type Cluster struct {
	Name     string
	requests atomic.Int64
	fault    atomic.Pointer[Fault]
	rebuilds atomic.Int64
}

// Requests is how many requests it got.
func (c *Cluster) Requests() int64 { return c.requests.Load() }

// Break gives it a fault, or repairs it.
func (c *Cluster) Break(f Fault) { c.fault.Store(&f) }

// Rebuild makes it another cluster under the same name. Its namespace is to be emptied by the caller.
func (c *Cluster) Rebuild() { c.rebuilds.Add(1) }

// identity is what its UID is made of.
func (c *Cluster) identity() string {
	if rebuilds := c.rebuilds.Load(); rebuilds > 0 {
		return fmt.Sprintf("%s#%d", c.Name, rebuilds)
	}
	return c.Name
}

// Proxy gives each cluster a path. It passes credentials on, and has none itself.
type Proxy struct {
	asked    sync.Map // of *atomic.Int64, by what was asked
	server   *httptest.Server
	reverse  *httputil.ReverseProxy
	mu       sync.RWMutex
	clusters map[string]*Cluster
}

// prefix is the beginning of the path of a cluster.
const prefix = "/c/"

// NewProxy starts a proxy before an API server, on a port of loopback.
func NewProxy(admin *rest.Config) (*Proxy, error) {
	anonymous := rest.AnonymousClientConfig(admin)
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	upstream, err := url.Parse(admin.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	p := &Proxy{clusters: map[string]*Cluster{}}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Host = upstream.Host
		},
		Transport: transport, FlushInterval: -1, ModifyResponse: identify,
		ErrorLog: log.New(io.Discard, "", 0), // clients that end their watches
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	return p, nil
}

// Close ends it, with all connections.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Add adds a cluster.
func (p *Proxy) Add(name string) *Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &Cluster{Name: name}
	p.clusters[name] = c
	return c
}

func (p *Proxy) cluster(name string) *Cluster {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.clusters[name]
}

// Kubeconfig is one that leads to a cluster, with a token of the API server.
func (p *Proxy) Kubeconfig(name, token string) []byte {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "c"}}},
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": p.server.URL + prefix + name, "certificate-authority-data": authority}}},
		"users":    []any{map[string]any{"name": "c", "user": map[string]any{"token": token}}},
	})
	if err != nil {
		panic(err) // strings and bytes are always JSON
	}
	return text
}

// headerCluster tells the answer which cluster was asked.
const headerCluster = "X-Simulated-Cluster"

// ServeHTTP passes a request to the API server, unless its cluster has a fault.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, prefix), "/")
	c := p.cluster(name)
	if c == nil || !strings.HasPrefix(r.URL.Path, prefix) {
		http.Error(w, "there is no such cluster", http.StatusNotFound)
		return
	}
	c.requests.Add(1)
	p.count(r, name, path)
	if fault := c.fault.Load(); fault != nil && fault.answers(w, r) {
		return
	}
	r.URL.Path = "/" + path
	r.URL.RawPath = ""
	if path == identityPath { // its UID is the identity of a cluster
		r.Header.Set("Accept", "application/json")
		r.Header.Del("Accept-Encoding")
		r.Header.Set(headerCluster, c.identity())
	}
	p.reverse.ServeHTTP(w, r)
}

// count counts a request by its verb and path, without the namespace of the cluster.
func (p *Proxy) count(r *http.Request, cluster, path string) {
	verb := r.Method
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	counter, _ := p.asked.LoadOrStore(verb+" "+strings.Replace(path, "namespaces/"+cluster+"/", "", 1), new(atomic.Int64))
	if number, isNumber := counter.(*atomic.Int64); isNumber {
		number.Add(1)
	}
}

// Asked is how often each verb and path was asked for, of all clusters.
func (p *Proxy) Asked() map[string]int64 {
	found := map[string]int64{}
	p.asked.Range(func(what, counter any) bool {
		text, isText := what.(string)
		number, isNumber := counter.(*atomic.Int64)
		if isText && isNumber {
			found[text] = number.Load()
		}
		return true
	})
	return found
}

// answers answers a request by the fault. It returns false for those that are passed on.
func (f *Fault) answers(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case f.Silent:
		<-r.Context().Done()
		return true
	case f.Refuses:
		panic(http.ErrAbortHandler) // closes the connection
	case f.Denies == "" || r.Method != http.MethodPatch:
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil || !bytes.Contains(body, []byte(f.Denies)) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":%q}`,
		fmt.Sprintf("admission webhook \"policy.example.com\" denied the request: %s is not allowed on this cluster", f.Denies))
	return true
}

const identityPath = "api/v1/namespaces/kube-system"

// identify gives the namespace kube-system of a cluster a UID of its own.
func identify(response *http.Response) error {
	name := response.Request.Header.Get(headerCluster)
	if name == "" || response.StatusCode != http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var namespace map[string]any
	if err := json.Unmarshal(body, &namespace); err != nil {
		return fmt.Errorf("reading the namespace kube-system: %w", err)
	}
	if metadata, isMap := namespace["metadata"].(map[string]any); isMap {
		sum := sha256.Sum256([]byte(name))
		metadata["uid"] = fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	}
	if body, err = json.Marshal(namespace); err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
