// A vCenter for the sandbox: govmomi's simulator with SOAP and REST on one loopback port, and no machines in it.
// It prints its address, and ends when its input does: whoever started it cannot leave it behind.
package main

import (
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
)

func main() {
	model := simulator.VPX()
	model.Machine = 0
	if err := model.Create(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	model.Service.RegisterEndpoints = true
	model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: url.UserPassword("user", "pass")}
	server := model.Service.NewServer()
	fmt.Println(server.URL.Host)
	io.Copy(io.Discard, os.Stdin)
	server.Close()
}
