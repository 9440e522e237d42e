// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/graph"
)

// Listed is one line of the list of packages.
type Listed struct {
	Name           string          `json:"name"`
	DefaultChannel string          `json:"defaultChannel,omitempty"`
	Channels       []ListedChannel `json:"channels,omitempty"`
	Bundles        int             `json:"bundles"`
	Description
	// Deprecated is the message of a deprecated package.
	Deprecated string `json:"deprecated,omitempty"`
	Digest     string `json:"digest"`
}

// ListedChannel is a channel of a Listed package.
type ListedChannel struct {
	Name string `json:"name"`
	// Heads are the bundles that no entry of the channel replaces or skips.
	Heads      []string `json:"heads,omitempty"`
	Deprecated string   `json:"deprecated,omitempty"`
}

// Summarize writes a line about each package that can be used, and adds to the problems of the index what is wrong in packages
// that can be used nevertheless, as OLM v1 uses them.
func (x *Index) Summarize(lean io.ReaderAt, to io.Writer) error {
	var line bytes.Buffer
	for _, entry := range x.Packages {
		if entry.Problem != "" {
			continue
		}
		p, err := x.readPackage(lean, entry)
		if err != nil {
			return err
		}
		x.mention(p)
		line.Reset()
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(listed(p, entry)); err != nil {
			return err
		}
		if _, err := to.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// mention adds the entries of channels without a bundle to the problems, and channels that are not one chain, of which the newest
// bundle is not certain.
func (x *Index) mention(p *catalog.Package) {
	bundles := make(map[string]bool, len(p.Bundles))
	for _, bundle := range p.Bundles {
		bundles[bundle.Name] = true
	}
	for _, channel := range p.Channels {
		if fault := graph.Fault(channel); fault != "" && len(x.Problems) < mostProblems {
			x.Problems = append(x.Problems, shorten(fmt.Sprintf("package %s: %s", p.Name, fault)))
		}
		missing, first := 0, ""
		for _, entry := range channel.Entries {
			if bundles[entry.Name] {
				continue
			}
			if missing++; missing == 1 {
				first = entry.Name
			}
		}
		if missing == 0 || len(x.Problems) >= mostProblems {
			continue
		}
		text := fmt.Sprintf("package %s: channel %s names the bundle %s, which does not exist", p.Name, channel.Name, first)
		if missing > 1 {
			text += fmt.Sprintf(", and %d more", missing-1)
		}
		x.Problems = append(x.Problems, shorten(text))
	}
}

func listed(p *catalog.Package, entry Package) Listed {
	line := Listed{Name: p.Name, DefaultChannel: p.DefaultChannel, Bundles: len(p.Bundles), Description: entry.Description, Digest: entry.Digest}
	deprecated := map[string]string{}
	for _, d := range p.Deprecations {
		message := shorten(d.Message)
		switch d.Schema {
		case catalog.SchemaPackage:
			line.Deprecated = message
		case catalog.SchemaChannel:
			deprecated[d.Name] = message
		}
	}
	for _, channel := range p.Channels {
		line.Channels = append(line.Channels, ListedChannel{Name: channel.Name, Heads: graph.Heads(channel), Deprecated: deprecated[channel.Name]})
	}
	return line
}
