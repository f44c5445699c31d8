/* Stand-in kernel module: an object that holds nothing but what modinfo shows. */
#define INFO(name, text) static const char name[] __attribute__((used, section(".modinfo"), aligned(1))) = text
INFO(version, "version=" VERSION);
INFO(license, "license=" LICENSE);
INFO(description, "description=stand-in: simulated GPU");
INFO(depends, "depends=" DEPENDS);
INFO(name, "name=" NAME);
INFO(alias, "alias=pci:v000010DEd*sv*sd*bc03sc02i00*");
