/* The simulated device: a driver whose launches go to a function, and whose memory is the host's. */
#pragma once
#include "driver.h"

extern const gm_driver gm_driver_simulated;
