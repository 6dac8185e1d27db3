"""The same as shop.yaml, with types: `fractal deploy shop.py --wait`."""

from acmedb import AcmeDb, link_to_acmedb
from fractal_cloud import LiveSystem, custom_workloads

orders = AcmeDb(id="orders", version="8", size="small")
web = custom_workloads.kubernetes.workload(id="web", image="nginx:1.29", container_port=8080)
link_to_acmedb(web, orders, keyspace="shop")

shop = LiveSystem(id="ls-shop", components=[orders, web])
